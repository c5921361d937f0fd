//! Collects the secrets in the words of a command.

use crate::import::secrets::{Secrets, names_headers};

/// Collects the secrets in the words of a command. Short options are read as in `curl`, which scripts also
/// use for requests.
pub(super) fn collect(words: &[String], secrets: &Secrets) {
    let mut option = "";
    // For most programs, `-u` precedes a user with a password; for AIPerf and genai-perf, it precedes the
    // address of a server.
    let asks_by_u = words.iter().any(|word| ["aiperf", "genai-perf"].iter().any(|tool| word.ends_with(tool)));
    for (at, word) in words.iter().enumerate() {
        secrets.add_text(word);
        match word.strip_prefix("--") {
            Some(name) => {
                let (name, value) = name.split_once('=').unwrap_or((name, ""));
                secrets.add_named(name, value);
                option = name;
            }
            None if word == "-H" => option = "header",
            None if word == "-u" => option = if asks_by_u { "url" } else { "password" },
            // A word with a leading dash is another option. After a long option, it may instead be a key that
            // begins with a dash.
            None if word.starts_with('-') && !words[at - usize::from(at > 0)].starts_with("--") => option = "",
            None => secrets.add_named(option, word),
        }
        if (word.starts_with("--") || word == "-H") && names_headers(option) {
            let inline = word.split_once('=').map(|(_, value)| value.to_owned());
            let more = words[at + 1..].iter().take_while(|word| !word.starts_with("--")).cloned();
            secrets.add_headers(&inline.into_iter().chain(more).collect::<Vec<_>>());
        }
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        // The value may be a whole command in one word, as in --serve-cmd '…'.
        let command = if word.starts_with("--") { value } else { word };
        if option.ends_with("cmd")
            && let Some(inner) = shlex::split(command).filter(|inner| inner.len() > 1)
        {
            collect(&inner, secrets);
            continue;
        }
        secrets.add_named(name, value);
        for text in [word, value] {
            if text.starts_with(['{', '['])
                && let Ok(value) = serde_json::from_str(text)
            {
                secrets.add_json(&value);
                names_headers(option).then(|| secrets.add_json(&serde_json::json!({ "headers": value })));
            }
        }
    }
}
