//! Finds where HTTP/2 frames begin and end in a sequence of bytes that may be split anywhere (RFC 9113,
//! section 4). It parses only the heads of frames, so that data can be stamped frame by frame as it passes;
//! the `h2` crate parses the same bytes completely. The module uses no sockets and no clocks.

/// Size of a frame's head, in bytes.
const HEAD: usize = 9;
/// Size of the preface that a client sends at the start of a connection, in bytes.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// The kinds of frames that are distinguished here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Headers,
    Reset,
    Settings,
    GoAway,
    Continuation,
    Other,
}

/// One HTTP/2 frame, as far as its head describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// The number of the frame's stream; 0 for the connection itself.
    pub(super) stream: u32,
    flags: u8,
    /// Size of the payload in bytes.
    length: usize,
    /// Size of the padding in the payload, including its length field, in bytes.
    padding: usize,
}

impl Frame {
    const ACK: u8 = 0x1;
    const END_STREAM: u8 = 0x1;
    const PADDED: u8 = 0x8;

    fn read(head: [u8; HEAD]) -> Frame {
        let [a, b, c, kind, flags, d, e, f, g] = head;
        let kind = match kind {
            0x0 => Kind::Data,
            0x1 => Kind::Headers,
            0x3 => Kind::Reset,
            0x4 => Kind::Settings,
            0x7 => Kind::GoAway,
            0x9 => Kind::Continuation,
            _ => Kind::Other,
        };
        let stream = u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff;
        Frame { kind, stream, flags, length: u32::from_be_bytes([0, a, b, c]) as usize, padding: 0 }
    }

    /// Whether this is the last frame of its stream.
    pub(super) fn ends_stream(&self) -> bool {
        matches!(self.kind, Kind::Data | Kind::Headers) && self.flags & Frame::END_STREAM != 0
    }

    /// Whether a reader of the stream gets this frame as data. `h2` does not return an empty frame, unless
    /// it ends the stream.
    pub(super) fn is_shown(&self) -> bool {
        self.kind == Kind::Data && (self.length > self.padding || self.ends_stream())
    }

    /// Whether this frame contains the sender's settings; otherwise it may be an acknowledgment of the
    /// other side's settings.
    pub(super) fn tells_settings(&self) -> bool {
        self.kind == Kind::Settings && self.flags & Frame::ACK == 0
    }

    fn is_padded(&self) -> bool {
        self.kind == Kind::Data && self.flags & Frame::PADDED != 0
    }
}

/// The position of the parser in a sequence of frames.
#[derive(Debug)]
pub(super) struct Frames {
    /// Number of bytes of the preface that are still missing before the first frame.
    preface: usize,
    head: [u8; HEAD],
    /// Number of bytes of `head` that have arrived.
    of_head: usize,
    /// The frame whose payload is being read, and how many bytes of the payload are still missing; `None`
    /// between frames.
    under_way: Option<(Frame, usize)>,
}

/// The beginning or the end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The head of the frame is complete.
    Begun(Frame),
    /// The last byte of the frame has arrived.
    Whole(Frame),
}

impl Frames {
    /// Creates a parser for the bytes that a server sends.
    pub(super) fn of_server() -> Frames {
        Frames { preface: 0, head: [0; HEAD], of_head: 0, under_way: None }
    }

    /// Creates a parser for the bytes that a client sends, which begin with the preface.
    pub(super) fn of_client() -> Frames {
        Frames { preface: PREFACE, ..Frames::of_server() }
    }

    /// Processes the next bytes and reports the frames that begin and end in them.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Event)) {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let Some((frame, left)) = &mut self.under_way else {
                let taken = (HEAD - self.of_head).min(bytes.len());
                self.head[self.of_head..self.of_head + taken].copy_from_slice(&bytes[..taken]);
                self.of_head += taken;
                bytes = &bytes[taken..];
                if self.of_head == HEAD {
                    self.of_head = 0;
                    let frame = Frame::read(self.head);
                    tell(Event::Begun(frame));
                    self.go_on(frame, frame.length, &mut tell);
                }
                continue;
            };
            if frame.is_padded() && *left == frame.length {
                frame.padding = 1 + usize::from(bytes[0]);
            }
            let taken = (*left).min(bytes.len());
            let (frame, left) = (*frame, *left - taken);
            bytes = &bytes[taken..];
            self.go_on(frame, left, &mut tell);
        }
    }

    fn go_on(&mut self, frame: Frame, left: usize, tell: &mut impl FnMut(Event)) {
        self.under_way = (left > 0).then_some((frame, left));
        if left == 0 {
            tell(Event::Whole(frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wire(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    fn told(frames: &mut Frames, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        frames.take(bytes, |event| events.push(event));
        events
    }

    #[test]
    fn frames_are_told_when_they_begin_and_when_they_are_whole() {
        let mut frames = Frames::of_client();
        assert_eq!(told(&mut frames, b"PRI * HTTP/2.0\r\n\r\nSM\r\n"), []);
        let bytes = [&b"\r\n"[..], &wire(4, 0, 0, b""), &wire(1, 5, 3, b"abc")].concat();
        let events = told(&mut frames, &bytes);
        let names: Vec<_> = events
            .iter()
            .map(|event| match event {
                Event::Begun(frame) => ("begun", frame.kind, frame.stream),
                Event::Whole(frame) => ("whole", frame.kind, frame.stream),
            })
            .collect();
        let of = |kind, stream| [("begun", kind, stream), ("whole", kind, stream)];
        assert_eq!(names, [of(Kind::Settings, 0), of(Kind::Headers, 3)].concat());
        let Event::Whole(headers) = events[3] else { panic!("{events:?}") };
        assert!(headers.ends_stream() && !headers.is_shown());
        let Event::Whole(settings) = events[1] else { panic!("{events:?}") };
        assert!(settings.tells_settings() && !settings.ends_stream());
    }

    #[test]
    fn padding_and_emptiness_show_nothing() {
        let shown = |flags, payload: &[u8]| {
            let events = told(&mut Frames::of_server(), &wire(0, flags, 1, payload));
            let Some(Event::Whole(frame)) = events.last() else { panic!("{events:?}") };
            frame.is_shown()
        };
        assert!(shown(0, b"x"));
        assert!(!shown(0, b""));
        assert!(shown(1, b""), "it ends the stream");
        assert!(!shown(8, b"\x02\0\0"), "padding alone");
        assert!(shown(8, b"\x02x\0\0"));
        let acknowledged = told(&mut Frames::of_server(), &wire(4, 1, 0, b""));
        assert!(matches!(acknowledged[..], [_, Event::Whole(frame)] if !frame.tells_settings()));
    }

    proptest! {
        /// The same frames are reported in order, however the wire splits the bytes.
        #[test]
        fn cuts_change_nothing(
            frames in prop::collection::vec((0u8..11, any::<u8>(), 0u32..9, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
            cuts in prop::collection::vec(1usize..13, 0..300),
        ) {
            let bytes: Vec<u8> =
                frames.iter().flat_map(|(kind, flags, stream, payload)| wire(*kind, *flags, *stream, payload)).collect();
            let whole = told(&mut Frames::of_server(), &bytes);
            prop_assert_eq!(whole.len(), frames.len() * 2);
            let (mut pieces, mut rest, mut events) = (Frames::of_server(), &bytes[..], Vec::new());
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                rest = behind;
                events.extend(told(&mut pieces, piece));
            }
            prop_assert_eq!(events, whole);
        }
    }
}
