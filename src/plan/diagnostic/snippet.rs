//! The lines of a plan that an error quotes. Only these lines are passed to the renderer, which reads all
//! of its input, so an error about a large file costs no more than an error about a small file.

use annotate_snippets::{Annotation, AnnotationKind, Element, Origin, Snippet};

use crate::plan::text::source::{Source, Sources};
use crate::plan::text::span::{Span, clamp};

/// Two places that are at most this many bytes apart are shown in one piece.
const NEAR: usize = 8_192;

/// A line longer than this is not quoted, because a caret would be hard to find in it.
const LONG_LINE: usize = 8_192;

/// A mark: its kind, its place in bytes of the concatenated texts, and a label.
pub(crate) type Mark<'a> = (AnnotationKind, &'a Span, Option<&'a str>);

/// A piece of one text with its marks.
struct Piece<'a> {
    source: Source<'a>,
    /// Whole lines, in bytes of the text.
    lines: Span,
    marks: Vec<(AnnotationKind, Span, Option<&'a str>)>,
}

/// Quotes the places of one error; places near each other are shown in one piece.
pub(crate) fn elements<'a>(sources: &'a Sources, marks: impl Iterator<Item = Mark<'a>>) -> Vec<Element<'a>> {
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    for (kind, span, label) in marks {
        let source = sources.of(span.start);
        let at = first_line(span, source);
        let lines = whole_lines(source.text, &at);
        let near =
            |piece: &&mut Piece<'_>| piece.source.start == source.start && distance(&piece.lines, &lines) <= NEAR;
        match pieces.iter_mut().find(near) {
            Some(piece) => {
                piece.lines = piece.lines.start.min(lines.start)..piece.lines.end.max(lines.end);
                piece.marks.push((kind, at, label));
            }
            None => pieces.push(Piece { source, lines, marks: vec![(kind, at, label)] }),
        }
    }
    pieces.into_iter().map(Piece::element).collect()
}

impl<'a> Piece<'a> {
    fn element(self) -> Element<'a> {
        let path = self.source.name.display().to_string();
        let text = self.source.text;
        let first = self.marks.first().map_or(self.lines.start, |(_, at, _)| at.start);
        if whole_lines(text, &(first..first)).len() > LONG_LINE {
            let place = self.source.place(first);
            return Origin::path(path).line(place.line).char_column(place.column).into();
        }
        let start = self.lines.start;
        let line = text[..start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        let annotation = |(kind, at, label): (AnnotationKind, Span, Option<&'a str>)| -> Annotation<'a> {
            kind.span(at.start - start..at.end - start).label(label)
        };
        let annotations = self.marks.into_iter().map(annotation);
        Snippet::source(&text[self.lines]).line_start(line).path(path).annotations(annotations).into()
    }
}

/// The number of bytes between two ranges.
fn distance(a: &Span, b: &Span) -> usize {
    a.start.max(b.start).saturating_sub(a.end.min(b.end))
}

/// The lines that a range touches, without the final line break.
fn whole_lines(text: &str, at: &Span) -> Span {
    let start = text[..at.start].rfind('\n').map_or(0, |before| before + 1);
    let end = text[at.end..].find('\n').map_or(text.len(), |after| at.end + after);
    start..end
}

/// Limits a mark to one line and at least one character. The range is in bytes of `source`.
fn first_line(span: &Span, source: Source<'_>) -> Span {
    let text = source.text;
    let span = clamp(span.start.saturating_sub(source.start)..span.end.saturating_sub(source.start), text);
    let line_end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
    let end = span.end.min(line_end).max((span.start + 1).min(line_end));
    clamp(span.start..end, text)
}
