//! Text of others on its way to a terminal: what a terminal would obey or hide is shown as `�`, and secrets are found
//! behind it.

/// Stands for a character that would move the cursor, turn the text around or not be seen.
const INSTEAD: char = '\u{fffd}';

/// Whether a terminal draws nothing for a character that changes what is read all the same: controls, marks that turn the
/// direction of text, separators of lines, and all that Unicode calls `Default_Ignorable_Code_Point`: zero-width characters,
/// fillers, variation selectors, tags.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A name or a sentence of others, in one line and fit for a terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { INSTEAD } else { c }).collect()
}

/// A whole page, fit for a terminal: its line ends, tabs and colours (`ESC [ … m`) stay. What comes from others goes
/// through [`plain`] before it is put into a page; this is the net below.
pub fn page(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour(rest);
        let length = if colour > 0 { colour } else { c.len_utf8() };
        match c {
            _ if colour > 0 => out.push_str(&rest[..colour]),
            '\n' | '\t' => out.push(c),
            c if is_unseen(c) => out.push(INSTEAD),
            c => out.push(c),
        }
        rest = &rest[length..];
    }
    out
}

/// As a shell takes it.
pub fn quoted(text: &str) -> String {
    let simple = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(simple) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// How many bytes of colour a text begins with.
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(rest.len());
    if rest[end..].starts_with('m') { end + 3 } else { 0 }
}

/// `text` with `mark` in place of `secret`, wherever it stands: also where unseen characters, themselves or as JSON escapes
/// them, were put between its own. Whoever removes such characters later must not put the secret together again.
pub(crate) fn without_secret(text: &str, secret: &str, mark: &str) -> String {
    let wanted: Vec<char> = secret.chars().filter(|c| !is_unseen(*c)).collect();
    if wanted.is_empty() {
        return text.to_owned();
    }
    // As it is first: what looks like an escape may be a part of it.
    let text = &text.replace(secret, mark);
    let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), 0, 0);
    while let Some(found) = text[at..].find(wanted[0]) {
        let start = at + found;
        match end_of(&wanted, &text[start..]) {
            Some(length) => {
                out.push_str(&text[copied..start]);
                out.push_str(mark);
                copied = start + length;
                at = copied;
            }
            None => at = start + wanted[0].len_utf8(),
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// `text` with `mark` in place of each of `secrets`. A longer one goes first, since a shorter one may be a part of it. The
/// credentials behind a scheme (`Basic …`) are found alone too, and each as it stands inside a JSON string.
pub(crate) fn without_secrets<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>, mark: &str) -> String {
    let mut forms: Vec<String> = Vec::new();
    for secret in secrets {
        let credentials = secret.split_once(' ').map(|(_scheme, credentials)| credentials.trim());
        for form in credentials.into_iter().chain([secret]).filter(|form| !form.is_empty()) {
            let json = serde_json::Value::from(form).to_string();
            forms.extend([json[1..json.len() - 1].to_owned(), form.to_owned()]);
        }
    }
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms.iter().fold(text.to_owned(), |text, form| without_secret(&text, form, mark))
}

/// Where `wanted` ends, if these are the first characters of `text` that are seen. What follows an escape character is seen
/// where only that is taken out, and not seen where a terminal obeys it.
fn end_of(wanted: &[char], text: &str) -> Option<usize> {
    [false, true].into_iter().find_map(|obeyed| {
        let mut seen = seen(text, obeyed);
        let mut end = None;
        for wanted in wanted {
            let (behind, c) = seen.next()?;
            if c != *wanted {
                return None;
            }
            end = Some(behind);
        }
        end
    })
}

/// The characters that are seen, each with the byte where it ends; where sequences are `obeyed`, nothing of them is.
fn seen(text: &str, obeyed: bool) -> impl Iterator<Item = (usize, char)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let c = text[at..].chars().next()?;
            let escaped = if c == '\\' { escape(&text[at..]) } else { None };
            let (length, c) = escaped.unwrap_or((c.len_utf8(), c));
            at += length;
            if escaped.is_none() && !is_unseen(c) {
                return Some((at, c));
            }
            if obeyed {
                at += sequence(c, &text[at..]);
            }
        }
    })
}

/// How many bytes of `rest` a terminal obeys behind the control `c`: those of an ANSI sequence, `ESC [ … letter`.
pub fn sequence(c: char, rest: &str) -> usize {
    let introducer = match c {
        '\u{1b}' if rest.starts_with('[') => 1,
        '\u{9b}' => 0,
        _ => return 0,
    };
    let bytes = &rest.as_bytes()[introducer..];
    let parameters = bytes.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    match bytes.get(parameters) {
        Some(0x40..=0x7e) => introducer + parameters + 1,
        _ => 0,
    }
}

/// The escape of an unseen character that a text begins with, by its bytes, and the character: JSON's `\u0001`, `\n`, YAML's
/// `\x01`, Rust's `\u{1}`.
fn escape(text: &str) -> Option<(usize, char)> {
    let digits = |prefix: &str, count: usize| text.strip_prefix(prefix)?.get(..count);
    let braced = text.strip_prefix("\\u{").and_then(|rest| rest.split_once('}')).map(|(digits, _)| digits);
    let forms = [(digits("\\u", 4), 2), (digits("\\x", 2), 2), (digits("\\U", 8), 2), (braced, 4)];
    let unseen = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).filter(|c| is_unseen(*c));
    let long = forms.into_iter().find_map(|(digits, more)| {
        let digits = digits?;
        Some((digits.len() + more, unseen(digits)?))
    });
    let short = [("\\n", '\n'), ("\\r", '\r'), ("\\t", '\t'), ("\\b", '\u{8}'), ("\\f", '\u{c}'), ("\\e", '\u{1b}')];
    long.or_else(|| short.into_iter().find(|(escape, _)| text.starts_with(escape)).map(|(_, c)| (2, c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c\u{200d}d\ne"), "a�[2Jb�c�d�e");
        assert_eq!(page("a\n\t\u{1b}[31mb\u{1b}[0m\u{1b}[2J\u{2066}c\r"), "a\n\t\u{1b}[31mb\u{1b}[0m�[2J�c�");
        assert_eq!(page("模型 é 🚀"), "模型 é 🚀");
    }

    #[test]
    fn a_secret_is_found_behind_what_is_not_seen() {
        let hidden = |text: &str| without_secret(text, "canary", "*");
        assert_eq!(hidden("a canary, can\u{1}ary, c\u{200b}an\u{202e}ary"), "a *, *, *");
        assert_eq!(hidden(r"can\u0001ary can\nary can\u200bary can\u0061ary"), r"* * * can\u0061ary");
        assert_eq!(hidden(r"can\x01ary can\u{1}ary can\U000e0001ary"), "* * *");
        assert_eq!(hidden("cana cancanary"), "cana can*");
        assert_eq!(hidden("can\u{1b}[0mary can\u{1b}[1;31mary can\u{9b}2Kary ca\u{1b}[1mna\u{1b}[0mry"), "* * * *");
        assert_eq!(hidden(r"can\u001b[0mary can\x1b[38;5;1mary can\u{1b}[mary can\e[0mary"), "* * * *");
        // Where only the escape is taken out, what follows it stays.
        assert_eq!(without_secret("a\u{1b}[0mb", "a[0mb", "*"), "*");
        for c in
            "\u{34f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}\u{180f}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\u{e0100}\u{e01ef}"
                .chars()
        {
            assert_eq!(hidden(&format!("can{c}ary")), "*", "{c:?}");
            assert_eq!(plain(&c.to_string()), "�", "{c:?}");
        }
        assert_eq!(without_secret(r"key a\nb", r"a\nb", "*"), "key *");
        assert_eq!(without_secret("ab", "\n", "*"), "ab");
    }

    #[test]
    fn nothing_is_left_of_several_secrets() {
        let hidden = |text: &str| without_secrets(text, ["canary", "canary-long", "Basic dXNlcg", ""], "*");
        assert_eq!(hidden("canary-long canary"), "* *", "the longer one is hidden as a whole");
        assert_eq!(hidden("Basic dXNlcg, user dXNlcg"), "*, user *", "credentials without their scheme");
        let odd = without_secrets(r#"a"b\c and "a\"b\\c""#, [r#"a"b\c"#], "*");
        assert_eq!(odd, r#"* and "*""#);
    }
}
