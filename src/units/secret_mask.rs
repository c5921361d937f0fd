//! Finds secrets in a text, however a server, a proxy or a log has encoded them: with escapes of JSON, of URLs or of
//! HTML, in base64, in another case, or with invisible characters in between.
//!
//! The text is read as a sequence of characters. Where it has an escape, both the escape as it is written and the
//! character that it stands for are tried, because a part of a secret may look like an escape.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use super::text::{escape, is_unseen, sequence};

/// Secrets with at least this many characters are also found in another case. A shorter one may be an ordinary word.
const FOLDED_FROM: usize = 8;
/// Secrets with at least this many bytes are also found in base64. The encoding of a shorter one may occur by chance.
const ENCODED_FROM: usize = 6;
/// The digits of base64 (RFC 4648, sections 4 and 5) from 62 on, in the standard alphabet and in that of URLs.
const LAST_DIGITS: [[char; 2]; 2] = [['+', '/'], ['-', '_']];

/// Finds secrets in texts. It is made once for many texts.
#[derive(Clone, Default)]
pub struct SecretMask {
    forms: Vec<Form>,
    /// Whether an occurrence of a form can begin with a byte, by the byte's value.
    starts: Vec<bool>,
    mark: &'static str,
}

impl fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretMask")
    }
}

/// One form of a secret.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    /// The visible characters.
    wanted: Vec<char>,
    /// Whether the case of ASCII letters is ignored.
    is_folded: bool,
    /// Whether the digits of base64 before and after the form also contain bits of the secret.
    partial: [bool; 2],
}

/// A character of a text, or several that are not visible, read at some place.
struct Reading {
    /// The place after it.
    end: usize,
    /// The character; `None` if nothing is visible.
    seen: Option<char>,
}

impl SecretMask {
    /// Creates a mask that replaces each of `secrets` by `mark`. The credentials after a scheme (`Basic …`) are also
    /// found without the scheme.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>, mark: &'static str) -> SecretMask {
        let mut forms = Vec::new();
        for secret in secrets {
            let credentials = secret.split_once(' ').map(|(_scheme, credentials)| credentials.trim());
            for text in credentials.into_iter().chain([secret]) {
                forms.push(Form::plain(text, text.len() >= FOLDED_FROM));
                if text.len() >= ENCODED_FROM {
                    forms.extend(Form::encoded(text.as_bytes()));
                }
            }
        }
        SecretMask::of(forms, mark)
    }

    /// Creates a mask for one secret, which is found only in its own case and not in base64.
    pub(super) fn exact(secret: &str, mark: &'static str) -> SecretMask {
        SecretMask::of(vec![Form::plain(secret, false)], mark)
    }

    fn of(forms: Vec<Form>, mark: &'static str) -> SecretMask {
        let mut kept: Vec<Form> = Vec::new();
        for form in forms {
            if !form.wanted.is_empty() && !kept.contains(&form) {
                kept.push(form);
            }
        }
        let mut starts = vec![false; 256];
        for form in &kept {
            let first = form.wanted[0];
            for c in [first, first.to_ascii_lowercase(), first.to_ascii_uppercase()] {
                starts[usize::from(first_byte(c))] |= c == first || form.is_folded;
            }
        }
        for special in SPECIAL {
            starts[usize::from(special)] = !kept.is_empty();
        }
        SecretMask { forms: kept, starts, mark }
    }

    /// Whether there is no secret to find.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Returns the text with a mark in place of each secret.
    pub fn hide(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
        for hidden in self.places(text) {
            out.push_str(&text[copied..hidden.start]);
            out.push_str(self.mark);
            copied = hidden.end;
        }
        out.push_str(&text[copied..]);
        out
    }

    /// Returns the places of secrets. Places that overlap are joined, so that no part of a secret remains.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            if !self.starts[usize::from(byte)] {
                continue;
            }
            let first = readings(text, at);
            let fits = self.forms.iter().filter(|form| form.begins_with(&first));
            let places: Vec<_> = fits.filter_map(|form| Some(form.whole(text, at..form.end(text, at)?))).collect();
            let Some(start) = places.iter().map(|place| place.start).min() else { continue };
            let end = places.iter().map(|place| place.end).max().unwrap_or(start);
            // A form in base64 may begin before an earlier place.
            match found.last_mut().filter(|last| start < last.end) {
                Some(last) => *last = last.start.min(start)..last.end.max(end),
                None => found.push(start..end),
            }
        }
        found
    }
}

impl Form {
    /// The secret itself.
    fn plain(text: &str, is_folded: bool) -> Form {
        Form { wanted: text.chars().filter(|c| !is_unseen(*c)).collect(), is_folded, partial: [false; 2] }
    }

    /// What is always the same in the base64 encodings of texts that contain the secret: three forms, because the secret
    /// may begin at any byte of a group of three, in both alphabets.
    fn encoded(secret: &[u8]) -> Vec<Form> {
        let of = |before: usize, last: [char; 2]| {
            let bytes = [vec![0; before].as_slice(), secret].concat();
            let bits = 8 * bytes.len();
            let wanted = ((8 * before).div_ceil(6)..bits / 6).map(|index| digit(&bytes, index, last)).collect();
            Form { wanted, is_folded: false, partial: [before > 0, !bits.is_multiple_of(6)] }
        };
        (0..3).flat_map(|before| LAST_DIGITS.map(|last| of(before, last))).collect()
    }

    fn fits(&self, c: char, wanted: char) -> bool {
        c == wanted || (self.is_folded && c.eq_ignore_ascii_case(&wanted))
    }

    fn begins_with(&self, first: &[Reading]) -> bool {
        first.iter().any(|reading| reading.seen.is_some_and(|c| self.fits(c, self.wanted[0])))
    }

    /// Returns the place after the form if it occurs at `start`; `None` otherwise.
    fn end(&self, text: &str, start: usize) -> Option<usize> {
        // Most texts differ in the first ordinary characters.
        let (mut at, mut matched) = (start, 0);
        while let Some(byte) = text.as_bytes().get(at).filter(|byte| is_ordinary(**byte)) {
            let Some(wanted) = self.wanted.get(matched) else { return Some(at) };
            if !self.fits(char::from(*byte), *wanted) {
                return None;
            }
            (at, matched) = (at + 1, matched + 1);
        }
        let mut ends = BTreeSet::from([at]);
        for wanted in &self.wanted[matched..] {
            let mut next = BTreeSet::new();
            // Nothing that is skipped ends before it begins, so each place is looked at once.
            while let Some(at) = ends.pop_first() {
                for Reading { end, seen } in readings(text, at) {
                    match seen {
                        Some(c) if self.fits(c, *wanted) => drop(next.insert(end)),
                        Some(_) => {}
                        None => drop(ends.insert(end)),
                    }
                }
            }
            if next.is_empty() {
                return None;
            }
            ends = next;
        }
        ends.pop_last()
    }

    /// Extends the place of a form by the digits of base64 that contain other bits of the secret, and by their padding.
    fn whole(&self, text: &str, Range { start, end }: Range<usize>) -> Range<usize> {
        let is_digit = |c: &char| c.is_ascii_alphanumeric() || LAST_DIGITS.as_flattened().contains(c);
        let [before, after] = self.partial;
        let left = text[..start].chars().next_back().filter(|c| before && is_digit(c));
        let right = text[end..].chars().next().filter(|c| after && is_digit(c));
        let (start, end) = (start - left.map_or(0, char::len_utf8), end + right.map_or(0, char::len_utf8));
        let padding = if after { text[end..].bytes().take(2).take_while(|byte| *byte == b'=').count() } else { 0 };
        start..end + padding
    }
}

/// Returns a digit of the base64 encoding of bytes.
fn digit(bytes: &[u8], index: usize, last: [char; 2]) -> char {
    let bit = 6 * index;
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or_default());
    let two = byte(bit / 8) << 8 | byte(bit / 8 + 1);
    match (two >> (10 - bit % 8)) as u8 & 63 {
        value @ 0..26 => char::from(b'A' + value),
        value @ 26..52 => char::from(b'a' + value - 26),
        value @ 52..62 => char::from(b'0' + value - 52),
        62 => last[0],
        _ => last[1],
    }
}

/// The bytes with which something begins that has another reading than itself.
const SPECIAL: [u8; 4] = [b'\\', b'%', b'&', b'+'];

/// Whether a byte is a visible ASCII character that has only one reading.
fn is_ordinary(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && !SPECIAL.contains(&byte)
}

fn first_byte(c: char) -> u8 {
    c.encode_utf8(&mut [0; 4]).as_bytes()[0]
}

/// Returns all readings of a text at a place: the character itself, and the character for which an escape stands. A
/// terminal may interpret an invisible character together with the characters after it.
fn readings(text: &str, at: usize) -> Vec<Reading> {
    let rest = &text[at..];
    let Some(c) = rest.chars().next() else { return Vec::new() };
    let escaped = match c {
        '\\' => escape(rest),
        '%' => percent(rest),
        '&' => entity(rest),
        // Forms of web pages send spaces like this.
        '+' => Some((1, ' ')),
        _ => None,
    };
    let mut found = Vec::new();
    for (length, c) in escaped.into_iter().chain([(c.len_utf8(), c)]) {
        let end = at + length;
        if !is_unseen(c) {
            found.push(Reading { end, seen: Some(c) });
            continue;
        }
        found.push(Reading { end, seen: None });
        let obeyed = sequence(c, &text[end..]);
        if obeyed > 0 {
            found.push(Reading { end: end + obeyed, seen: None });
        }
    }
    found
}

/// Reads a number in hexadecimal or decimal digits at the start of a text. Returns the number of digits and the
/// character with this number.
fn numbered(text: &str, radix: u32, most: usize) -> Option<(usize, char)> {
    let digits = text.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(radix)).count();
    Some((digits, char::from_u32(u32::from_str_radix(&text[..digits], radix).ok()?)?))
}

/// Reads a character in percent-encoding (RFC 3986, section 2.1): one byte, or the bytes of a character in UTF-8.
fn percent(text: &str) -> Option<(usize, char)> {
    let byte = |at: usize| {
        let digits = text.get(3 * at..3 * at + 3)?.strip_prefix('%')?;
        numbered(digits, 16, 2).filter(|(count, _)| *count == 2).and_then(|(_, c)| u8::try_from(c).ok())
    };
    let length = match byte(0)? {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let bytes: Vec<u8> = (0..length).map_while(byte).collect();
    Some((3 * length, str::from_utf8(&bytes).ok()?.chars().next()?))
}

/// The names of ASCII characters in HTML (WHATWG HTML, "Named character references").
const ENTITIES: [(&str, char); 43] = [
    ("amp", '&'),
    ("AMP", '&'),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("apos", '\''),
    ("excl", '!'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("equals", '='),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("UnderBar", '_'),
    ("grave", '`'),
    ("DiacriticalGrave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("VerticalLine", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
];

/// Reads a character reference of HTML: `&amp;`, `&#38;` or `&#x26;`. The semicolon may be missing.
fn entity(text: &str) -> Option<(usize, char)> {
    let body = &text[1..];
    let (length, c) = match body.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => numbered(digits, 16, 10).map(|(length, c)| (length + 2, c)),
            None => numbered(number, 10, 10).map(|(length, c)| (length + 1, c)),
        }?,
        None => {
            let length = body.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
            let named = ENTITIES.iter().filter(|(name, _)| body[..length].starts_with(name));
            let (name, c) = named.max_by_key(|(name, _)| name.len())?;
            (name.len(), *c)
        }
    };
    let semicolon = usize::from(body[length..].starts_with(';'));
    Some((1 + length + semicolon, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "Sk-9&f<2>\"'/+%~=a\\b";

    fn hide(text: &str) -> String {
        SecretMask::new([KEY], "*").hide(text)
    }

    /// Encodes bytes in base64, independently of the mask.
    fn base64(bytes: &[u8], last: [char; 2], is_padded: bool) -> String {
        let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last).collect();
        let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        let mut text: String = bits
            .as_bytes()
            .chunks(6)
            .map(|six| format!("{:0<6}", str::from_utf8(six).unwrap()))
            .map(|six| digits[usize::from_str_radix(&six, 2).unwrap()])
            .collect();
        while is_padded && !text.len().is_multiple_of(4) {
            text.push('=');
        }
        text
    }

    #[test]
    fn every_encoding_of_a_secret_is_hidden() {
        let each = |of: &dyn Fn(char) -> String| KEY.chars().map(of).collect::<String>();
        let html = |quote: &str| {
            let text = KEY.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            text.replace('"', "&quot;").replace('\'', quote)
        };
        let is_unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        for form in [
            KEY.to_owned(),
            KEY.to_ascii_lowercase(),
            KEY.to_ascii_uppercase(),
            each(&|c| format!("%{:02x}", u32::from(c))),
            each(&|c| format!("%{:02X}", u32::from(c))),
            each(&|c| if is_unreserved(c) { c.to_string() } else { format!("%{:02X}", u32::from(c)) }),
            each(&|c| if c == '%' { "%25".to_owned() } else { c.to_string() }),
            html("&#39;"),
            html("&#x27;"),
            html("&apos;").to_ascii_uppercase().replace("&APOS;", "&apos;").replace("&QUOT;", "&quot;"),
            each(&|c| format!("&#{};", u32::from(c))),
            each(&|c| format!("&#x{:X};", u32::from(c))),
            each(&|c| format!("&#0{};", u32::from(c))),
            each(&|c| format!("\\u{:04x}", u32::from(c))),
            each(&|c| format!("\\u{:04X}", u32::from(c))),
            serde_json::Value::from(KEY).to_string().trim_matches('"').to_owned(),
            KEY.replace('\\', "\\\\").replace('"', "\\\"").replace('/', "\\/"),
            // Several escapes together, and characters that are not seen.
            KEY.replace('&', "\u{200b}%26\u{202e}").replace('"', "&quot;\\u200b"),
            KEY.replace('9', "%E2%80%8B9&#8203;"),
        ] {
            assert_eq!(hide(&format!("key {form} is wrong")), "key * is wrong", "{form}");
        }
        assert_eq!(SecretMask::new(["two words-in-a-key"], "*").hide("a=TWO+words-in-a%2Dkey&b=c"), "a=*&b=c");
        assert_eq!(SecretMask::new(["pa\u{df}wort"], "*").hide("pa%C3%9Fwort pa&#223;wort pa\u{df}wort"), "* * *");
    }

    #[test]
    fn base64_is_hidden_wherever_the_secret_begins_and_ends_in_it() {
        for (before, after) in (0..7).flat_map(|before| (0..5).map(move |after| (before, after))) {
            for (last, is_padded) in [(['+', '/'], true), (['+', '/'], false), (['-', '_'], true), (['-', '_'], false)]
            {
                let bytes = [vec![b'u'; before].as_slice(), KEY.as_bytes(), &vec![b'v'; after]].concat();
                let text = base64(&bytes, last, is_padded);
                let from = 8 * before / 6;
                let to = if after == 0 { text.len() } else { (8 * (before + KEY.len())).div_ceil(6) };
                let shown = format!("Basic {}*{}.", &text[..from], &text[to..]);
                assert_eq!(hide(&format!("Basic {text}.")), shown, "{before} {after} {last:?} {is_padded}");
            }
        }
        let escaped = base64(KEY.as_bytes(), ['+', '/'], true).replace('+', "%2B").replace('/', "\\/");
        assert_eq!(hide(&format!("({escaped})")), "(*)");
    }

    #[test]
    fn short_secrets_hide_only_themselves() {
        let hide = |secret: &str, text: &str| SecretMask::new([secret], "*").hide(text);
        assert_eq!(hide("abc", "abc ABC YWJj a%62c"), "* ABC YWJj *");
        assert_eq!(hide("EMPTY", "EMPTY choices is empty"), "* choices is empty");
        assert_eq!(hide("sk-1234", "SK-1234 sk-1234 c2stMTIzNA=="), "SK-1234 * *");
        assert_eq!(hide("sk-12345", "SK-12345"), "*");
        assert_eq!(hide("", "text"), "text");
        assert!(SecretMask::new([""], "*").is_empty() && !SecretMask::new(["a"], "*").is_empty());
    }

    #[test]
    fn nothing_is_left_of_secrets_that_overlap() {
        let mask = SecretMask::new(["abcdefgh", "efghijkl", "ab"], "*");
        assert_eq!(mask.hide("abcdefghijkl abefghijkl ab"), "* ** *");
        assert_eq!(SecretMask::new(["aaaaaaaa"], "*").hide("aaaaaaaaaaaa b aaaaaaa"), "* b aaaaaaa");
    }

    #[test]
    fn hostile_texts_take_no_longer_than_their_length() {
        let mask = SecretMask::new(["%%%%%%%%%%%%%%%%x", "aaaaaaaaaaaaaaaaaaaaaaaab"], "*");
        for piece in ["%", "%25", "&#37;", "a", "\u{200b}", "a\u{200b}", "\\u0025", "&", "\\"] {
            let text = piece.repeat(5_000 / piece.len());
            assert_eq!(mask.hide(&text), text);
        }
    }
}
