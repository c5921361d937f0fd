//! Adds a digest to JSON files of the store and checks it. The file itself contains its digest.
//!
//! The digest is at the very end of the file, on its own lines, and always takes up 83 bytes:
//!
//! ```text
//! ,
//!   "sha256": "<64 hex digits>"
//! }
//! ```
//!
//! The digest is the SHA-256 of all bytes before that comma: `head -c -83 run.json | sha256sum`. Every
//! changed bit is detected: a change before the comma changes the digest, a changed digit no longer matches
//! the digest, and after any other change, the file ends neither like a file with a digest nor like a file
//! without one. The digest detects damage. It is not a signature, because a deliberate change can include a
//! new digest.

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::hex::hex;

/// The bytes before the hex digits of the digest.
const BEFORE: &[u8] = b",\n  \"sha256\": \"";
/// The bytes after the hex digits of the digest.
const BEHIND: &[u8] = b"\"\n}\n";
/// The number of hex digits of the digest.
const DIGITS: usize = 64;

/// Serializes `value`, which must be an object with fields, and adds its digest at the end. Returns the
/// text and the digest.
pub(super) fn sealed(value: &impl Serialize) -> serde_json::Result<(Vec<u8>, String)> {
    let mut text = serde_json::to_vec_pretty(value)?;
    let Some(body) = text.strip_suffix(b"\n}").map(<[u8]>::len) else {
        return Err(serde::ser::Error::custom("only an object with fields can carry a digest"));
    };
    text.truncate(body);
    let digest = hex(&Sha256::digest(&text));
    text.extend([BEFORE, digest.as_bytes(), BEHIND].concat());
    Ok((text, digest))
}

/// Checks the digest at the end of `text` and returns it; `None` if the text does not end with a digest.
/// Returns an error if the digest does not match.
pub(super) fn digest(text: &[u8]) -> Result<Option<String>, String> {
    let end = BEFORE.len() + DIGITS + BEHIND.len();
    let Some((body, end)) = text.len().checked_sub(end).and_then(|at| text.split_at_checked(at)) else {
        return Ok(None);
    };
    let Some(digits) = end.strip_prefix(BEFORE).and_then(|end| end.strip_suffix(BEHIND)) else { return Ok(None) };
    let digest = hex(&Sha256::digest(body));
    match digest.as_bytes() == digits {
        true => Ok(Some(digest)),
        false => Err("its SHA-256 does not match the one at its end".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let (text, named) = sealed(&serde_json::json!({ "format": 1, "files": { "a": "b" } })).unwrap();
        assert_eq!(digest(&text), Ok(Some(named.clone())));
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["sha256"], named.as_str());
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest(&flipped), Ok(Some(named.clone())), "bit {bit}");
        }
    }

    #[test]
    fn the_end_is_as_long_as_the_documents_say() {
        let (text, named) = sealed(&serde_json::json!({ "a": 1 })).unwrap();
        assert_eq!(hex(&Sha256::digest(&text[..text.len() - 83])), named);
        assert!(sealed(&serde_json::json!({})).is_err());
        assert_eq!(digest(b"{}"), Ok(None));
    }
}
