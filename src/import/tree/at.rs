//! A value of a file while it is being read. Every reading method marks the value as read.

use std::str::FromStr;

use serde_json::Value as Json;

use super::{Item, Kind};
use crate::import::error::ImportError;
use crate::import::notes::Notes;
use crate::import::said::Said;
use crate::import::secrets::names_headers;
use crate::import::text::one_line;
use crate::units::Decimal;

/// A value and the notes of its reader.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(super) item: &'a Item,
    pub(super) notes: &'a Notes<'a>,
}

impl<'a> At<'a> {
    /// Returns the value of a table's entry; `None` if there is no such entry, or its value is null.
    pub(crate) fn get(self, key: &str) -> Option<At<'a>> {
        let item = self.item.peek(key).filter(|item| !matches!(item.value, Kind::Null))?;
        Some(At { item, ..self })
    }

    /// Returns the value of the first of these keys that the table has.
    pub(crate) fn any(self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Returns the value at the end of a path of keys.
    pub(crate) fn path(self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().try_fold(self, |at, key| at.get(key))
    }

    /// Returns the entries of a table that are not null.
    pub(crate) fn entries(self) -> Vec<(&'a str, At<'a>)> {
        match &self.item.value {
            Kind::Table(entries) => entries
                .iter()
                .filter(|(_, item)| !matches!(item.value, Kind::Null))
                .map(|(key, item)| (key.as_str(), At { item, ..self }))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the elements of a list; any other value counts as a list with one element.
    pub(crate) fn list(self) -> Vec<At<'a>> {
        match &self.item.value {
            Kind::List(items) => {
                if items.is_empty() {
                    self.item.taken.set(true);
                }
                items.iter().map(|item| At { item, ..self }).collect()
            }
            _ => vec![self],
        }
    }

    /// Whether the value is a table.
    pub(crate) fn is_table(self) -> bool {
        self.item.is_table()
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(self) -> bool {
        self.item.is_list()
    }

    /// Returns the value unchanged, without marking it as read.
    pub(crate) fn peek(self) -> &'a Item {
        self.item
    }

    /// Returns the origin of the value: path and line.
    pub(crate) fn origin(self) -> String {
        match self.item.line {
            0 => self.item.path.clone(),
            line => format!("{}, line {line}", self.item.path),
        }
    }

    /// Returns the line of the value, from 1; 0 if it is unknown.
    pub(crate) fn line(self) -> usize {
        self.item.line
    }

    /// Returns the notes, which contain the secrets that must not be shown.
    pub(crate) fn notes(self) -> &'a Notes<'a> {
        self.notes
    }

    /// Returns the value on one line, without secrets.
    pub(crate) fn shown(self) -> String {
        let mut keys = self.item.path.split('.').map(|key| key.split('[').next().unwrap_or_default());
        let of_headers = keys.clone().find(|key| names_headers(key));
        let key = of_headers.or_else(|| keys.next_back()).unwrap_or_default();
        one_line(&self.notes.secrets.shown(key, &self.item.json().to_string()))
    }

    /// Marks everything in the value as read.
    pub(crate) fn take(self) -> At<'a> {
        self.item.take();
        self
    }

    /// Marks the value as read without counting it, because it becomes an option of a command, which is
    /// counted instead.
    pub(crate) fn as_option(self) -> At<'a> {
        self.item.leaves(&mut |leaf| self.notes.uncount(&leaf.path, leaf.line));
        self.take()
    }

    /// Returns the value as JSON.
    pub(crate) fn json(self) -> Json {
        self.take().item.json()
    }

    /// Returns a text, a number or a switch as a text.
    pub(crate) fn text(self) -> Option<Said<String>> {
        let value = match &self.item.value {
            Kind::Text(text) | Kind::Number(text) => text.clone(),
            Kind::Bool(value) => value.to_string(),
            Kind::Null => return None,
            Kind::List(_) | Kind::Table(_) => {
                self.missing("expected one value, not a list or a table");
                return None;
            }
        };
        self.take();
        Some(Said { value, origin: self.origin() })
    }

    /// Returns a number, or a text that can be parsed as one.
    pub(crate) fn number<T: FromStr>(self, wanted: &str) -> Option<Said<T>> {
        let said = self.text()?;
        match said.value.trim().parse() {
            Ok(value) => Some(Said { value, origin: said.origin }),
            Err(_) => {
                self.unreadable(&format!("this is not {wanted}"));
                None
            }
        }
    }

    /// Returns the value as a whole number.
    pub(crate) fn whole(self) -> Option<Said<u32>> {
        let said = self.number::<Decimal>("a whole number")?;
        let whole = said.value.to_string().parse().ok();
        if whole.is_none() {
            self.unreadable("this is not a whole number");
        }
        Some(Said { value: whole?, origin: said.origin })
    }

    /// Returns the value as a decimal number.
    pub(crate) fn decimal(self) -> Option<Said<Decimal>> {
        self.number("a number")
    }

    /// Returns the value as a switch: true or false.
    pub(crate) fn flag(self) -> Option<Said<bool>> {
        let said = self.text()?;
        match said.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(Said { value: true, origin: said.origin }),
            "false" | "no" | "off" => Some(Said { value: false, origin: said.origin }),
            _ => {
                self.unreadable("this is not true or false");
                None
            }
        }
    }

    /// Returns a duration in seconds, from a number of seconds or a text such as `90s`, `5m` or `500ms`.
    pub(crate) fn seconds(self) -> Option<Said<f64>> {
        let said = self.text()?;
        let text = said.value.trim();
        let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let unit = match &text[end..] {
            "" | "s" | "sec" | "seconds" => Some(1.0),
            "ms" => Some(0.001),
            "m" | "min" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        };
        let number = text[..end].trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match number.zip(unit) {
            Some((number, unit)) => Some(Said { value: number * unit, origin: said.origin }),
            None => {
                self.unreadable("this is not a number of seconds");
                None
            }
        }
    }

    /// Returns the text that represents the value in the lists: its path and its content.
    fn what(self) -> String {
        format!("{} = {}", self.item.path, self.shown())
    }

    /// Lists the value as a setting that has no counterpart in a plan.
    pub(crate) fn missing(self, why: &str) {
        self.take();
        self.item.leaves(&mut |leaf| self.notes.lost(&leaf.path, leaf.line));
        self.notes.add(crate::import::draft::Kind::Missing, &self.what(), why, self.item.line);
    }

    /// Notes that the value is invalid, which makes the import fail.
    pub(crate) fn unreadable(self, why: &str) {
        self.take();
        self.notes.wrong(&self.what(), why, self.item.line);
    }

    /// Lists a whole table by its name as a setting that has no counterpart in a plan.
    pub(crate) fn refused(self, why: &str) {
        self.take();
        self.item.leaves(&mut |leaf| self.notes.lost(&leaf.path, leaf.line));
        self.notes.add(crate::import::draft::Kind::Missing, &self.item.path, why, self.item.line);
    }

    /// Marks the value as read without counting it, because it was not requested or is counted
    /// under another name.
    pub(crate) fn skip(self) {
        self.take();
        self.item.leaves(&mut |leaf| self.notes.uncount(&leaf.path, leaf.line));
    }

    /// Skips all unread parts of the value.
    pub(crate) fn skip_rest(self) {
        self.rest(At::skip);
    }

    /// Lists the value as a setting that sweepline applies anyway, or handles differently.
    pub(crate) fn needless(self, why: &str) {
        self.take();
        self.notes.needless(&self.what(), why, self.item.line);
    }

    /// Lists the value as a setting that is in the plan with a different meaning.
    pub(crate) fn differs(self, why: &str) {
        self.take();
        self.notes.differs(&self.what(), why, self.item.line);
    }

    /// Applies `list` to all unread parts of the value, or to the whole value if nothing in it was read.
    pub(super) fn rest(self, list: impl Fn(At<'a>) + Copy) {
        if self.item.is_untouched() {
            return list(self);
        }
        for item in self.item.children() {
            At { item, ..self }.rest_of(list);
        }
    }

    fn rest_of(self, list: impl Fn(At<'a>) + Copy) {
        if !self.item.is_taken() {
            self.rest(list);
        }
    }

    /// Returns an error about the value.
    pub(crate) fn wrong(self, file: &str, what: &str, remedy: &str) -> ImportError {
        let place = match self.item.line {
            0 => format!("{file}: {}", self.item.path),
            line => format!("{file}:{line}: {}", self.item.path),
        };
        ImportError::shape(place, what, remedy)
    }
}
