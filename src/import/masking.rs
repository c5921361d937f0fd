//! Finds secrets in the text of another tool by their place alone: after the name of a secret, in the user
//! name, password or query of an address, or after `Bearer`. The length of the secret and other occurrences
//! of the same text do not matter.

use std::ops::Range;

use serde_json::Value;

use super::shell::{marks, without_mark_names};
use crate::units::secrecy::{SCHEMES, is_scheme, keys_in, names_secret};

/// The text that replaces a secret.
pub(super) const HIDDEN: &str = "***";
/// Values that mean "no key" for servers that do not require one.
const NO_KEY: [&str; 5] = ["empty", "none", "dummy", "-", ""];
/// Headers whose value extends to the end of the text.
const LONG_VALUES: [&str; 2] = ["authorization", "cookie"];
/// Minimum length of a number that is treated as a secret if it follows the name of a secret.
const SHORTEST_NUMBER: usize = 4;

/// The secrets that were found; for each, whether the name before it is the name of a secret.
pub(super) type Found = Vec<(String, bool)>;

/// Whether an option or a key with this name contains headers. argparse also accepts a prefix of a name.
pub(super) fn names_headers(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("header") || (name.len() >= 3 && "header".starts_with(&name))
}

/// Returns a text without its secrets, which are added to `found`.
pub(super) fn masked(text: &str, found: &mut Found) -> String {
    if text.starts_with(['{', '[', '"'])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        let clean = masked_json("", &value, found);
        return if clean == value { text.to_owned() } else { clean.to_string() };
    }
    let mut clean = String::with_capacity(text.len());
    let mut copied = 0;
    for Place { range, is_named } in places(text) {
        clean.push_str(&text[copied..range.start]);
        clean.push_str(HIDDEN);
        copied = range.end;
        found.push((text[range].to_owned(), is_named));
    }
    clean + &text[copied..]
}

/// Returns the JSON value that follows a name, without its secrets, which are added to `found`.
pub(super) fn masked_json(name: &str, value: &Value, found: &mut Found) -> Value {
    match value {
        // A reference to a secret, as in a plan, is not a secret itself.
        Value::Object(entries) if entries.len() == 1 && entries.get("secret").is_some_and(is_plan_reference) => {
            value.clone()
        }
        Value::Object(entries) => {
            // In a table with `value` or `levels`, `key` is the name of a varied parameter, not an API key.
            let is_pair = ["value", "levels"].iter().any(|beside| entries.contains_key(*beside));
            let one = |(key, value): (&String, &Value)| {
                let is_below = names_secret(name) || names_headers(name);
                let clean = match is_pair && key == "key" {
                    true => value.clone(),
                    false => masked_json(if is_below { name } else { key }, value, found),
                };
                (key.clone(), clean)
            };
            Value::Object(entries.iter().map(one).collect())
        }
        Value::Array(items) => items.iter().map(|item| masked_json(name, item, found)).collect(),
        Value::String(text) if is_secret(name, text) => {
            found.push((text.clone(), true));
            HIDDEN.into()
        }
        Value::String(text) if names_headers(name) && !text.is_empty() && text != HIDDEN => {
            found
                .push((text.split_once([':', '=']).map_or(text.as_str(), |(_, value)| value).trim().to_owned(), false));
            found.push((text.clone(), false));
            HIDDEN.into()
        }
        Value::String(text) => masked(text, found).into(),
        Value::Number(number) if names_secret(name) && number.to_string().len() >= SHORTEST_NUMBER => {
            found.push((number.to_string(), true));
            HIDDEN.into()
        }
        other => other.clone(),
    }
}

fn is_plan_reference(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("env:") || text.starts_with("file:"))
}

/// Whether a key means "no key".
pub(super) fn is_no_key(value: &str) -> bool {
    NO_KEY.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Whether the value after a name is a secret, rather than a reference to a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    names_secret(name) && !is_no_key(value) && value != HIDDEN && !is_reference(name, value)
}

/// Whether a value refers to a secret by the name of a variable.
fn is_reference(name: &str, value: &str) -> bool {
    let is_variable = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_upper = |text: &str| is_variable(text) && !text.contains(|c: char| c.is_ascii_lowercase());
    let bare = value.strip_prefix('$').map(|rest| rest.trim_matches(['{', '}']));
    let is_mark = marks(value).len() == 1 && without_mark_names(value).iter().all(|beside| beside.is_empty());
    (name.to_ascii_lowercase().ends_with("env") && is_variable(value))
        || value.strip_prefix("env:").is_some_and(is_variable)
        || bare.is_some_and(is_upper)
        || is_mark
}

/// The place of a secret in a text, and whether the name before it is the name of a secret.
struct Place {
    range: Range<usize>,
    is_named: bool,
}

/// Returns the places of secrets in a text that is not JSON, in order and without overlaps.
fn places(text: &str) -> Vec<Place> {
    let mut all = addresses(text);
    all.extend(pairs(text));
    all.extend(words(text));
    all.extend(keys_in(text).map(|range| Place { range, is_named: true }));
    all.retain(|place| !place.range.is_empty() && !text[place.range.clone()].starts_with(HIDDEN));
    all.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end)));
    let mut kept: Vec<Place> = Vec::new();
    for place in all {
        match kept.last_mut() {
            Some(last) if place.range.start < last.range.end => {
                last.range.end = last.range.end.max(place.range.end);
                last.is_named |= place.is_named;
            }
            _ => kept.push(place),
        }
    }
    kept
}

/// Hides the user, the password and the query of every address in a text, so that any sentence can show the
/// text.
pub(super) fn without_credentials(text: &str) -> String {
    let mut clean = text.to_owned();
    for place in addresses(text).into_iter().rev() {
        if !text[place.range.clone()].starts_with(HIDDEN) {
            clean.replace_range(place.range, HIDDEN);
        }
    }
    clean
}

/// Returns a sentence in which the secrets in quoted text, between backticks, are hidden.
pub(super) fn masked_quotes(sentence: &str) -> String {
    let part = |(number, part): (usize, &str)| match number % 2 {
        0 => part.to_owned(),
        _ => masked(part, &mut Found::new()),
    };
    sentence.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Whether a text contains a secret, judged by its place in the text.
pub(super) fn holds(text: &str) -> bool {
    masked(text, &mut Found::new()) != text
}

fn is_quote(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// Finds the user name, the password and the query of every address in a text.
fn addresses(text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut done = 0;
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let word = &text[start..start + text[start..].find(is_quote).unwrap_or(text.len() - start)];
        let authority = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
        // A password may contain an unescaped slash. In that case, the text after the colon is not
        // a port.
        let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let is_cut = authority.split_once(':').is_some_and(|(_, port)| !port.is_empty() && !is_port(port));
        let user = authority.rfind('@').or_else(|| word.rfind('@').filter(|_| is_cut));
        if let Some(user) = user.filter(|_| start >= done) {
            places.push(Place { range: start..start + user, is_named: true });
        }
        let rest = user.map_or(0, |user| user + 1);
        if let Some(query) = word[rest..].find(['?', '#']).map(|at| rest + at).filter(|at| start + at >= done) {
            let mut from = start + query + 1;
            for pair in word[query + 1..].split(['?', '&', '#']) {
                let value = pair.find('=').map_or(0, |at| at + 1);
                let is_named = value == 0 || names_secret(&pair[..value - 1]);
                places.push(Place { range: from + value..from + pair.len(), is_named });
                from += pair.len() + 1;
            }
            done = start + word.len();
        }
    }
    places
}

/// Returns the range of `user:password` in a word of the form `user:password@host`, without a scheme; `None`
/// if the word has another form.
fn bare_user(text: &str) -> Option<Range<usize>> {
    let at = text.find('@').filter(|_| !text.contains("://"))?;
    let at = text[at..].rfind('@').map_or(at, |last| at + last);
    let colon = text[..at].find(':')?;
    let start = text[..colon].rfind('=').map_or(0, |equals| equals + 1);
    let user = &text[start..colon];
    let is_user = !user.is_empty() && user.chars().all(|c| c.is_ascii_alphanumeric() || "._%+-~".contains(c));
    let host = &text[at + 1..];
    (is_user && !host.is_empty() && !host.starts_with("sha256:")).then_some(start..at)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Finds the text after the name of a secret: `name=value`, `name: value`, `"name": "value"`.
fn pairs(text: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (at, sign) in text.match_indices(['=', ':']) {
        if places.last().is_some_and(|place| at < place.range.end) {
            continue;
        }
        let named = text[..at].trim_end_matches(['"', '\'', '\\']);
        let begin =
            named.rfind(|c| !is_name(c)).map_or(0, |at| at + named[at..].chars().next().map_or(1, char::len_utf8));
        let name = &named[begin..];
        if name.is_empty() || !names_secret(name) {
            continue;
        }
        let blanks = if sign == ":" { text[at + 1..].bytes().take_while(|b| *b == b' ').count() } else { 0 };
        let start = at + 1 + blanks;
        let is_host = sign == ":" && blanks == 0 && is_port_of(&text[..begin], &text[start..]);
        let inside = text[start..].strip_prefix('{').map(|inside| inside.trim_start_matches([' ', '"']));
        let is_reference = inside.is_some_and(|inside| inside.starts_with("secret"));
        if is_host || is_reference || text[start..].starts_with("//") {
            continue;
        }
        let range = value_at(text, start, name);
        let value = &text[range.clone()];
        if is_secret(name, value) && !SCHEMES.contains(&value.to_ascii_lowercase().as_str()) {
            places.push(Place { range, is_named: true });
        }
    }
    places
}

/// Whether a colon separates a host and its port, in which case the host's name does not indicate a
/// secret.
fn is_port_of(before: &str, behind: &str) -> bool {
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    let ends = behind[digits..].is_empty() || behind[digits..].starts_with('/');
    let begins = before.ends_with("//") || before.ends_with('@') || before.is_empty();
    (2..=5).contains(&digits) && ends && begins
}

/// Returns the range of the value that begins at `start`. The value ends at its closing quote, at a blank, or
/// before the next name.
fn value_at(text: &str, start: usize, name: &str) -> Range<usize> {
    let rest = &text[start..];
    if rest.starts_with('[') {
        return start..start + rest.find(']').map_or(rest.len(), |at| at + 1);
    }
    let escapes = rest.bytes().take_while(|b| *b == b'\\').count();
    if let Some(quote) = rest[escapes..].chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let start = start + escapes + 1;
        let end = text[start..].find(|c| c == quote || (escapes > 0 && c == '\\')).map_or(text.len(), |at| start + at);
        return start..end;
    }
    let is_long = LONG_VALUES.iter().any(|long| name.to_ascii_lowercase().ends_with(long));
    if is_long {
        let end = rest.find(['"', '\'', '\n']).unwrap_or(rest.len());
        let end = rest[..end].find(" --").unwrap_or(end);
        // The key after a scheme such as `Bearer` may begin with dashes.
        let end = if SCHEMES.contains(&rest[..end].trim().to_ascii_lowercase().as_str()) { rest.len() } else { end };
        return start..start + rest[..end].trim_end().len();
    }
    let mut end = rest.find(is_quote).unwrap_or(rest.len());
    if SCHEMES.contains(&rest[..end].to_ascii_lowercase().as_str()) {
        let next = end + rest[end..].len() - rest[end..].trim_start().len();
        end = rest[next..].find(is_quote).map_or(rest.len(), |length| next + length);
    }
    let next = rest[..end].match_indices([',', ';', '&', '|']).map(|(at, _)| at).find(|at| {
        let behind = rest[at + 1..].trim_start();
        let length = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
        behind.is_empty() || (length > 0 && behind[length..].starts_with(['=', ':']))
    });
    let value = rest[..next.unwrap_or(end)].trim_end_matches([')', ']', '}', ',', ';']);
    start..start + value.len()
}

/// Finds the text after an option for a secret, after `Bearer`, and after `curl`'s short options.
fn words(text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let all = split(text);
    for (number, range) in all.iter().enumerate() {
        let word = &text[range.clone()];
        places.extend(
            bare_user(word)
                .map(|user| Place { range: range.start + user.start..range.start + user.end, is_named: true }),
        );
        let Some(next) = all.get(number + 1).cloned() else { break };
        let value = &text[next.clone()];
        let option = word.strip_prefix("--").unwrap_or_default();
        let is_option = names_secret(option) && !option.contains('=') && !value.starts_with("--");
        let is_user = word == "-u" && value.contains(':') && !value.contains("://");
        let scheme = word.rsplit(['=', ':']).next().unwrap_or_default();
        if (is_option && is_secret(option, value)) || is_user || (is_scheme(scheme) && is_behind_scheme(scheme, value))
        {
            places.push(Place { range: next, is_named: true });
            continue;
        }
        // A text that begins with the option is a message about it, and contains only the name of a header.
        let is_header = word == "-H" || (!option.contains('=') && option.len() > 2 && names_headers(option));
        if is_header && number > 0 {
            let values = all[number + 1..].iter().take_while(|range| !text[(*range).clone()].starts_with('-'));
            places.extend(values.map(|range| header_value(text, range)));
        }
    }
    places
}

/// Returns the place of a header's value in a word; the whole word if it contains no header name.
fn header_value(text: &str, range: &Range<usize>) -> Place {
    let word = &text[range.clone()];
    let name = word.find([':', '=']).filter(|at| word[..*at].bytes().all(|b| b.is_ascii_alphabetic() || b == b'-'));
    Place { range: range.start + name.map_or(0, |at| at + 1)..range.end, is_named: false }
}

/// Whether the word after an authentication scheme is a key. `Bearer` always precedes a key; `bearer` and
/// `basic` are also plain words, so the word after them has to look like a key.
fn is_behind_scheme(scheme: &str, word: &str) -> bool {
    let is_key = word.len() >= 8 && word.bytes().any(|b| b.is_ascii_digit());
    !word.starts_with('$') && marks(word).is_empty() && word != HIDDEN && (scheme == "Bearer" || is_key)
}

/// Returns the words of a text, without the quotes around them.
fn split(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_quote(c) || c == ',', start) {
            (true, Some(from)) => {
                words.push(from..at);
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_where_it_stands() {
        for (text, expected) in [
            ("http://bob:pw@h:1/v1?key=ab&x=1#y", "http://***@h:1/v1?key=***&x=***#***"),
            ("A=http://h/v1?abc", "A=http://h/v1?***"),
            ("https://me:p/w@h/v1", "https://***@h/v1"),
            ("http://token-server:8000/v1", "http://token-server:8000/v1"),
            ("token-server:8000", "token-server:8000"),
            ("me:pw@host:1", "***@host:1"),
            ("target=me:pw@host:1", "target=***@host:1"),
            ("image:tag@sha256:abc", "image:tag@sha256:abc"),
            ("owner=me,token=S1,x=2", "owner=me,token=***,x=2"),
            ("a=1;password=b;c=d", "a=1;password=***;c=d"),
            ("token=a,b", "token=***"),
            ("{\"x\":{\"auth_token\":\"S\"},\"a\":1}", "{\"x\":{\"auth_token\":\"***\"},\"a\":1}"),
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("--x [{\"api_key\":[\"ab\",\"cd\"]}]", "--x [{\"api_key\":***}]"),
            ("{x: {api_key: ab}}", "{x: {api_key: ***}}"),
            ("{\\\"token\\\": \\\"ab\\\"}", "{\\\"token\\\": \\\"***\\\"}"),
            ("Authorization: Bearer ab cd", "Authorization: ***"),
            ("note=Bearer ab", "note=Bearer ***"),
            ("X-Api-Key:ab", "X-Api-Key:***"),
            ("Cookie: a=b; c=d", "Cookie: ***"),
            ("vllm serve m --api-key ab --port 1", "vllm serve m --api-key *** --port 1"),
            ("curl -H X-Odd:ab -u me:ab http://h", "curl -H X-Odd:*** -u *** http://h"),
            ("time_to_first_token:500 request_latency:9", "time_to_first_token:500 request_latency:9"),
            ("api_key=$KEY token=env:A api_key_env=B key=none", "api_key=$KEY token=env:A api_key_env=B key=none"),
            ("run basic benchmarks", "run basic benchmarks"),
            ("a password: ", "a password: "),
            ("é token=é", "é token=***"),
        ] {
            assert_eq!(masked(text, &mut Found::new()), expected, "{text}");
            assert_eq!(masked(expected, &mut Found::new()), expected, "{expected}, once more");
        }
    }

    #[test]
    fn a_sentence_about_secrets_stays() {
        let text = "the plan holds no secret: add api_key: { secret: env:NAME } for http://u:p@h";
        assert_eq!(without_credentials(text), text.replace("u:p", HIDDEN));
        let text =
            "`api_key` is sent as `Authorization: Bearer`: write `api_key: { secret: env:NAME }`, not `a,token=b`";
        assert_eq!(masked_quotes(text), text.replace("token=b", "token=***"));
        assert_eq!(masked("--header X-Tenant", &mut Found::new()), "--header X-Tenant");
    }
}
