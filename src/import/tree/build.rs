//! Builds trees from the options of a command, or from a file that is merged on top of another.

use std::cell::Cell;

use serde_json::Value as Json;

use super::{Item, Kind};

impl Item {
    /// Returns a table that has no path of its own; its entries keep their paths.
    pub(in crate::import) fn table(entries: Vec<(String, Item)>) -> Item {
        Item { path: String::new(), line: 0, value: Kind::Table(entries), taken: Cell::new(false) }
    }

    /// Returns another value with the path and line of this value.
    pub(in crate::import) fn instead(&self, value: &Json) -> Item {
        let mut item = Item::of_json(value, self.path.clone());
        item.set_line(self.line);
        item
    }

    /// Returns a table with the path and line of this value.
    pub(in crate::import) fn within(&self, entries: Vec<(String, Item)>) -> Item {
        Item { path: self.path.clone(), line: self.line, ..Item::table(entries) }
    }

    /// Returns the same value with this line.
    pub(in crate::import) fn lined(mut self, line: usize) -> Item {
        self.set_line(line);
        self
    }

    fn set_line(&mut self, line: usize) {
        self.line = line;
        match &mut self.value {
            Kind::List(items) => items.iter_mut().for_each(|item| item.set_line(line)),
            Kind::Table(entries) => entries.iter_mut().for_each(|(_, item)| item.set_line(line)),
            _ => {}
        }
    }

    /// Sets the value of a key. Entries of a table are merged on top of the existing ones; anything else
    /// replaces the value.
    pub(in crate::import) fn lay(&mut self, key: &str, item: Item) {
        let Kind::Table(entries) = &mut self.value else { return };
        match entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, there)) if there.is_table() && item.is_table() => {
                if let Kind::Table(more) = item.value {
                    more.into_iter().for_each(|(key, item)| there.lay(&key, item));
                }
            }
            Some((_, there)) => *there = item,
            None => entries.push((key.to_owned(), item)),
        }
    }

    /// Adds a value to the list under a key.
    pub(in crate::import) fn push(&mut self, key: &str, item: Item) {
        let Kind::Table(entries) = &mut self.value else { return };
        match entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, Item { value: Kind::List(items), .. })) => items.push(item),
            _ => {
                let list = Item { value: Kind::List(vec![item]), ..Item::table(Vec::new()) };
                self.lay(key, list);
            }
        }
    }

    /// Returns the entries of the value, if it is a table.
    pub(in crate::import) fn into_entries(self) -> Vec<(String, Item)> {
        match self.value {
            Kind::Table(entries) => entries,
            _ => Vec::new(),
        }
    }

    /// Returns the elements of the value; any other value counts as a list with one element.
    pub(in crate::import) fn into_list(self) -> Vec<Item> {
        match self.value {
            Kind::List(items) => items,
            _ => vec![self],
        }
    }
}
