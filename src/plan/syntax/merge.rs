//! Merges the texts of a plan: tables are merged key by key at every depth; for any other value, the
//! upper text takes precedence.
//!
//! Keys keep the order of the lower text, and new keys of the upper text follow, so a fragment behaves as if
//! it were at the top of the file that uses it. Merging is associative if no key has a table as its value in
//! one text and a value of another type in another text.

use indexmap::IndexMap;

use crate::plan::model::axis;
use crate::plan::text::tree::{Entry, Node, Value};

/// Merges two trees. Values of `over` take precedence over values of `under`.
pub(crate) fn merge(over: Node, under: Node) -> Node {
    merge_as(over, under, false)
}

/// Merges two trees as described for [`merge`]. If they are the tables of a `matrix`, two names of the same
/// axis count as one key.
fn merge_as(mut over: Node, under: Node, matrix: bool) -> Node {
    if !matches!((&over.value, &under.value), (Value::Map(_), Value::Map(_))) {
        return over;
    }
    over.spread();
    let (Value::Map(upper), Value::Map(lower)) = (std::mem::replace(&mut over.value, Value::Null), under.value) else {
        return over;
    };
    let name = |entry: &Entry| match axis::first_name(&entry.key) {
        Some(first) if matrix => first.to_owned(),
        _ => entry.key.clone(),
    };
    let mut merged: IndexMap<String, Entry> = lower.into_iter().map(|entry| (name(&entry), entry)).collect();
    for mut entry in upper {
        let place = merged.entry(name(&entry));
        if let indexmap::map::Entry::Occupied(mut lower) = place {
            let below = std::mem::replace(&mut lower.get_mut().node, Node::new(Value::Null, 0..0));
            entry.node = merge_as(entry.node, below, entry.key == "matrix");
            lower.insert(entry);
        } else {
            place.insert_entry(entry);
        }
    }
    over.value = Value::Map(merged.into_values().collect());
    over
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::syntax::yaml;

    fn tree(text: &str) -> Node {
        yaml::read(text, 10_000).0.unwrap_or_else(|| panic!("{text}"))
    }

    /// Returns the values and their order as text, without places.
    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Map(entries) => {
                let entries: Vec<String> = entries.iter().map(|e| format!("{}: {}", e.key, shown(&e.node))).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
            Value::Int(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn tables_merge_and_the_rest_stays_above() {
        for (over, under, merged) in [
            ("{a: 1}", "{a: 2}", "{a: 1}"),
            ("{b: 1, a: 1}", "{a: 2, c: 2}", "{a: 1, c: 2, b: 1}"),
            ("{a: {x: 1}}", "{a: {x: 2, y: 2}}", "{a: {x: 1, y: 2}}"),
            ("{a: [1]}", "{a: [2, 3]}", "{a: [1]}"),
            ("{a: 1}", "{a: {x: 2}}", "{a: 1}"),
            ("{a: {x: 1}}", "{a: 2}", "{a: {x: 1}}"),
            ("{a: {}}", "{a: {x: 2}}", "{a: {x: 2}}"),
            ("{a: }", "{a: {x: 2}}", "{a: Null}"),
            (
                "{matrix: {concurrency: [1]}}",
                "{matrix: {batch_size: [2], qps: 1}}",
                "{matrix: {concurrency: [1], qps: 1}}",
            ),
            ("{concurrency: 1}", "{batch_size: 2}", "{batch_size: 2, concurrency: 1}"),
        ] {
            assert_eq!(shown(&merge(tree(over), tree(under))), merged, "{over} over {under}");
        }
    }

    #[test]
    fn what_comes_from_elsewhere_does_not_stretch_a_table() {
        let (over, mut under) = (tree("a: {x: {y: 1}}"), tree("a: {z: 1, x: {w: 2}}"));
        under.shift(1_000);
        let mut merged = merge(over, under);
        assert!(merged.extent().end < 20, "{:?}", merged.extent());
        assert!(merged.remove(&["a".into(), "z".into()]));
        assert!(merged.extent().end < 20, "{:?}", merged.extent());
        assert_eq!(merged.walk(&["a".into(), "x".into(), "w".into()]).span(), 1_017..1_018);
    }

    /// Generates tables with a few keys. The values of `t` and `u` are always tables, and the others
    /// never are.
    fn layer() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![(0..9).prop_map(|n: i32| n.to_string()), Just("[1, 2]".to_owned())];
        let flat = proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_flat_map(move |keys| {
            proptest::collection::vec(leaf.clone(), keys.len()).prop_map(move |values| {
                keys.iter().zip(values).map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>()
            })
        });
        flat.clone().prop_flat_map(move |own| {
            (flat.clone(), flat.clone(), any::<(bool, bool)>()).prop_map(move |(t, u, (with_t, with_u))| {
                let mut own = own.clone();
                own.extend(with_t.then(|| format!("t: {{{}}}", t.join(", "))));
                own.extend(with_u.then(|| format!("u: {{{}}}", u.join(", "))));
                format!("{{{}}}", own.join(", "))
            })
        })
    }

    proptest! {
        #[test]
        fn merging_is_associative(a in layer(), b in layer(), c in layer()) {
            let (a, b, c) = (tree(&a), tree(&b), tree(&c));
            let left = merge(merge(a.clone(), b.clone()), c.clone());
            let right = merge(a, merge(b, c));
            prop_assert_eq!(shown(&left), shown(&right));
        }

        #[test]
        fn a_text_over_itself_is_itself_and_nothing_changes_it(a in layer()) {
            prop_assert_eq!(shown(&merge(tree(&a), tree(&a))), shown(&tree(&a)));
            prop_assert_eq!(shown(&merge(tree(&a), tree("{}"))), shown(&tree(&a)));
            prop_assert_eq!(shown(&merge(tree("{}"), tree(&a))), shown(&tree(&a)));
        }
    }
}
