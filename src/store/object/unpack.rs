//! Reads the commits in a pack one by one, without holding all of them in memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// Calls `take` for each commit in a pack, with the short id of the run and the text of its `run.json`.
/// Returns whether the pack could be read to its end. If `take` returns an error, reading stops and the
/// error is returned.
pub(super) fn each<E>(pack: &[u8], take: impl FnMut(String, String) -> Result<(), E>) -> Result<bool, E> {
    let mut failed = None;
    let mut json = serde_json::Deserializer::from_slice(pack);
    let read = Pack(Runs { take, failed: &mut failed }).deserialize(&mut json).and_then(|()| json.end());
    failed.map_or(Ok(read.is_ok()), Err)
}

/// The whole pack: an object with `runs`.
struct Pack<R>(R);

/// The object with the runs.
struct Runs<'f, E, T> {
    take: T,
    failed: &'f mut Option<E>,
}

impl<'de, R: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for Pack<R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, R: DeserializeSeed<'de, Value = ()>> Visitor<'de> for Pack<R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a pack")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut runs = Some(self.0);
        while let Some(key) = map.next_key::<String>()? {
            match runs.take_if(|_| key == "runs") {
                Some(runs) => map.next_value_seed(runs)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        runs.map_or(Ok(()), |_| Err(A::Error::missing_field("runs")))
    }
}

impl<'de, E, T: FnMut(String, String) -> Result<(), E>> DeserializeSeed<'de> for Runs<'_, E, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, E, T: FnMut(String, String) -> Result<(), E>> Visitor<'de> for Runs<'_, E, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the texts of runs")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((id, text)) = map.next_entry()? {
            if let Err(error) = (self.take)(id, text) {
                *self.failed = Some(error);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pack: &str) -> (Result<bool, &str>, Vec<(String, String)>) {
        let mut runs = Vec::new();
        let done = each(pack.as_bytes(), |id, text| {
            runs.push((id, text));
            if runs.len() < 3 { Ok(()) } else { Err("full") }
        });
        (done, runs)
    }

    #[test]
    fn commits_come_one_by_one_until_the_pack_ends_or_one_cannot_be_taken() {
        let of = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), "{\n}".to_owned())).collect::<Vec<_>>();
        assert_eq!(read(r#"{"format":1,"runs":{"a":"{\n}","b":"{\n}"}}"#), (Ok(true), of(&["a", "b"])));
        assert_eq!(read(r#"{"runs":{"a":"{\n}","b":"{\n}","c":"{\n}","d":""}}"#), (Err("full"), of(&["a", "b", "c"])));
        for broken in [r#"{"runs":{"a":"{\n}""#, r#"{"runs":{"a":"{\n}","b":1}}"#, r#"{"runs":{"a":"{\n}"}}x"#] {
            assert_eq!(read(broken), (Ok(false), of(&["a"])), "{broken}");
        }
        for broken in ["", "[]", r#"{"format":1}"#, r#"{"runs":[]}"#] {
            assert_eq!(read(broken), (Ok(false), Vec::new()), "{broken}");
        }
    }
}
