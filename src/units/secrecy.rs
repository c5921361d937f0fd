//! Detects secrets and removes them from a text: values after names that announce a secret, keys of
//! well-known services, and addresses that contain a secret. All code that hides or rejects secrets uses
//! this module.

use std::ops::Range;

use crate::units::secret_mask::SecretMask;

/// Words that mark a key of a plan as the name of a secret.
const WORDS: [&str; 9] =
    ["key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials", "authorization"];
/// Words that name a secret in other tools, in addition to the words in plans.
const OTHER_WORDS: [&str; 14] = [
    "keys",
    "secrets",
    "passwords",
    "passphrase",
    "pass",
    "pwd",
    "auth",
    "bearer",
    "cookie",
    "cookies",
    "jwt",
    "sig",
    "signature",
    "sas",
];
/// Words that occur next to `token` in the names of measures and of a model's special tokens, which are not
/// secrets.
const OF_TEXT: [&str; 18] = [
    "bos",
    "budget",
    "eos",
    "first",
    "inter",
    "input",
    "latency",
    "limit",
    "max",
    "min",
    "output",
    "pad",
    "per",
    "prompt",
    "second",
    "special",
    "stop",
    "throughput",
];
/// Suffixes of names that are written without a separator, such as `accessToken`.
const ENDS: [&str; 5] = ["token", "secret", "password", "authorization", "apikeys"];
/// Prefixes of the keys of well-known services.
const KEY_PREFIXES: [&str; 6] = ["sk-", "hf_", "nvapi-", "ghp_", "github_pat_", "gsk_"];
/// Possible first words of the value of an `Authorization` header.
pub const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "digest", "negotiate", "apikey", "api-key"];

/// Returns the words of a name, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !c.is_alphanumeric()).map(str::to_ascii_lowercase)
}

/// Whether a value under this key of a plan may be a secret: true for `hf_token`, false for
/// `prompt_tokens`.
pub fn is_secret_name(key: &str) -> bool {
    words(key).any(|word| WORDS.contains(&word.as_str()) || word.ends_with("apikey"))
}

/// Whether a value under this name of any tool may be a secret. Tokens of a text are not secrets, as in
/// `time_to_first_token`.
pub fn names_secret(name: &str) -> bool {
    let is_of_text = words(name).any(|word| OF_TEXT.contains(&word.as_str()));
    let is_word = |word: &str| {
        WORDS.contains(&word)
            || word.ends_with("apikey")
            || OTHER_WORDS.contains(&word)
            || ENDS.iter().any(|end| word.ends_with(end))
    };
    words(name).any(|word| is_word(&word) && !(is_of_text && word == "token"))
}

/// Whether a word is an authorization scheme that precedes a key: `bearer` or `basic`.
pub fn is_scheme(word: &str) -> bool {
    SCHEMES[..2].contains(&word.to_ascii_lowercase().as_str())
}

/// Whether a word looks like a key of a well-known service.
pub fn looks_like_key(word: &str) -> bool {
    word.len() >= 12 && KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Returns the byte ranges of the keys of well-known services in a text.
pub fn keys_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut start = 0;
    let words = text.split_inclusive(move |c| !is_key(c)).map(move |piece| {
        let at = start;
        start += piece.len();
        at..at + piece.trim_end_matches(|c| !is_key(c)).len()
    });
    words.filter(|word| looks_like_key(&text[word.clone()]))
}

/// Whether a text contains a key of a well-known service, or credentials after a scheme in an authorization
/// header (`Authorization: Bearer …`). A scheme alone is an ordinary word, as in `run basic benchmarks`.
pub fn holds_key(text: &str) -> bool {
    let is_header = text.to_ascii_lowercase().contains("authorization");
    let mut words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    let is_behind_a_scheme =
        words.clone().skip(1).zip(&mut words).any(|(word, before)| {
            is_scheme(before) && word.len() >= 8 && !word.contains("{{") && !word.starts_with('$')
        });
    (is_header && is_behind_a_scheme) || keys_in(text).next().is_some()
}

/// Whether an address contains a secret: a user or password, a name-value pair whose name indicates a
/// secret, or a key of a well-known service.
pub fn carries_secret(url: &reqwest::Url) -> bool {
    let is_secret_pair =
        |pair: &str| pair.split_once('=').is_some_and(|(name, value)| is_secret_name(name) && !value.is_empty());
    let parts = [url.path(), url.query().unwrap_or_default(), url.fragment().unwrap_or_default()];
    let mut pairs = parts.iter().flat_map(|part| part.split(['/', '&', ';', '#', '?']));
    !url.username().is_empty()
        || url.password().is_some()
        || url.query_pairs().any(|(key, _)| is_secret_name(&key))
        || pairs.any(|pair| is_secret_pair(pair) || keys_in(pair).next().is_some())
}

/// Replaces every occurrence of `secret` in `text` by `mark`, even if it is escaped, or invisible characters were
/// inserted into it, because removing such characters later must not restore the secret.
pub(crate) fn without_secret(text: &str, secret: &str, mark: &'static str) -> String {
    SecretMask::exact(secret, mark).hide(text)
}

/// Replaces each of `secrets` in `text` by `mark`, in every encoding that [`SecretMask`] finds.
pub(crate) fn without_secrets<'a>(
    text: &str,
    secrets: impl IntoIterator<Item = &'a str>,
    mark: &'static str,
) -> String {
    SecretMask::new(secrets, mark).hide(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::text::plain;

    #[test]
    fn a_scheme_makes_a_secret_only_in_a_header() {
        assert!(holds_key("curl -H 'Authorization: Bearer 0123456789abcdef' http://a"));
        assert!(holds_key("VLLM_API_KEY=sk-0123456789abcdef vllm serve"));
        assert!(!holds_key("run basic benchmarks") && !holds_key("ask the bearer politely"));
        assert!(!holds_key("Authorization: Bearer $API_TOKEN"), "a shell's variable is not a key");
    }

    #[test]
    fn a_secret_is_found_behind_what_is_not_seen() {
        let hidden = |text: &str| without_secret(text, "canary", "*");
        assert_eq!(hidden("a canary, can\u{1}ary, c\u{200b}an\u{202e}ary"), "a *, *, *");
        assert_eq!(hidden(r"can\u0001ary can\nary can\u200bary c\u0061nary"), "* * * *");
        assert_eq!(hidden(r"can\x01ary can\u{1}ary can\U000e0001ary"), "* * *");
        assert_eq!(hidden("cana cancanary"), "cana can*");
        assert_eq!(hidden("can\u{1b}[0mary can\u{1b}[1;31mary can\u{9b}2Kary ca\u{1b}[1mna\u{1b}[0mry"), "* * * *");
        assert_eq!(hidden(r"can\u001b[0mary can\x1b[38;5;1mary can\u{1b}[mary can\e[0mary"), "* * * *");
        // If only the escape character is removed, the characters after it stay.
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
