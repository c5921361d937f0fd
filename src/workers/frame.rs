//! Reads and writes frames. A frame consists of a four-byte length, a one-byte kind, and the content.

use std::io::{self, Read, Write};

/// Maximum length of a frame's content, in bytes.
const MOST: usize = 1 << 30;

/// What a frame contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message as JSON.
    Message,
    /// Encoded records.
    Records,
    /// The data sets and traces to which the spec of a run refers by digest, as JSON.
    Material,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Message, Kind::Records, Kind::Material];
}

/// Writes a frame with a single call, so that the frames of several writers are not interleaved.
pub(super) fn write(output: &mut impl Write, kind: Kind, content: &[u8]) -> io::Result<()> {
    if content.len() > MOST {
        return Err(io::Error::other("a message is longer than 1 GiB"));
    }
    let mut frame = Vec::with_capacity(content.len() + 5);
    frame.extend((content.len() as u32).to_le_bytes());
    frame.push(kind as u8);
    frame.extend(content);
    output.write_all(&frame)?;
    output.flush()
}

/// Reads one frame; `None` at the end of the input. Fails if the bytes are not a frame: they then
/// come from a program other than a worker, for example a remote shell.
pub(super) fn read(input: &mut impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; 5];
    let mut filled = 0;
    while filled < head.len() {
        match input.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let kind = Kind::ALL.get(usize::from(head[4])).copied().filter(|_| length <= MOST);
    let Some(kind) = kind else {
        let text = String::from_utf8_lossy(&head).into_owned();
        return Err(io::Error::other(format!("another program writes to its stdout, beginning with {text:?}")));
    };
    let mut content = vec![0; length];
    input.read_exact(&mut content)?;
    Ok(Some((kind, content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Records, b"abc").unwrap();
        write(&mut bytes, Kind::Message, b"").unwrap();
        let mut input = bytes.as_slice();
        assert_eq!(read(&mut input).unwrap(), Some((Kind::Records, b"abc".to_vec())));
        assert_eq!(read(&mut input).unwrap(), Some((Kind::Message, Vec::new())));
        assert_eq!(read(&mut input).unwrap(), None);
        assert!(read(&mut &bytes[..6]).is_err(), "cut short");
    }

    #[test]
    fn what_a_shell_prints_is_named() {
        let error = read(&mut b"Welcome to client-1".as_slice()).unwrap_err().to_string();
        assert!(error.contains("Welco"), "{error}");
    }
}
