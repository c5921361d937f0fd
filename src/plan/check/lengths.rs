//! Checks of lengths: they must be specified in exactly one way, numbers must be within their range, and
//! it must be possible to draw from the distributions.

use super::checker::{Checker, steps};
use crate::plan::diagnostic::error::{Code, Diagnostic};
use crate::plan::model::content::{Reuse, resolve};
use crate::plan::model::length_field::LengthField;
use crate::plan::model::lengths::lengths_field::{
    WrittenDistribution, WrittenLengths, WrittenLognormal, WrittenNormal,
};
use crate::plan::model::lengths::{LEAST_OUTPUT, LEAST_PROMPT, MOST_TOKENS};
use crate::plan::model::scenario::Scenario;
use crate::plan::model::table::Table;
use crate::plan::text::tree::{Node, Step, Value};
use crate::units::Decimal;

/// Maximum sigma of a lognormal distribution. Beyond it, the upper and the lower quartile differ by a factor
/// of about a thousand or more.
const MOST_SIGMA: Decimal = Decimal::new(5, 0);

/// The prompt or the response of a request, represented by its minimum number of tokens.
#[derive(Clone, Copy)]
struct Side(u32);

const PROMPT: Side = Side(LEAST_PROMPT);
const OUTPUT: Side = Side(LEAST_OUTPUT);

impl Checker<'_> {
    /// Checks `lengths` of a scenario.
    pub(super) fn lengths(&mut self, name: &str, scenario: &Scenario, table: &Table<Scenario>) {
        let Some(lengths) = &scenario.lengths else { return };
        let at = &steps!["scenarios", name, "lengths"][..];
        self.beside_lengths(name, scenario);
        let resolved = resolve(name, table);
        if resolved.is_some_and(|resolved| resolved.content.reuse == Reuse::SamePrompt) {
            let message = format!("all requests of scenario `{name}` are identical, so their lengths cannot vary");
            let remedy = "start from a scenario whose prompts differ, for example with `base: B1`";
            self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
        }
        if !self.one_form(at, lengths) {
            return;
        }
        for (key, distribution, side) in [("prompt", &lengths.prompt, PROMPT), ("output", &lengths.output, OUTPUT)] {
            if let Some(distribution) = distribution {
                self.distribution(&[at, &steps![key]].concat(), distribution, side);
            }
        }
        if let Some(pairs) = &lengths.pairs {
            self.pairs_of_lengths(&[at, &steps!["pairs"]].concat(), pairs.len(), |index| {
                let pair = &pairs[index];
                (vec![("prompt", pair.prompt, PROMPT), ("output", pair.output, OUTPUT)], pair.weight)
            });
        }
        if let Some(data) = &lengths.data {
            self.table_of_data(&[at, &steps!["data"]].concat(), &data.table());
        }
        if let Some(rows) = &lengths.histogram {
            self.buckets(&[at, &steps!["histogram"]].concat(), rows.len(), |index| {
                let row = &rows[index];
                let ranges = vec![
                    ("prompt_min", "prompt_max", (row.prompt_min, row.prompt_max), PROMPT),
                    ("output_min", "output_max", (row.output_min, row.output_max), OUTPUT),
                ];
                (ranges, row.weight)
            });
        }
    }

    /// Reports fields that set a single length next to `lengths`.
    fn beside_lengths(&mut self, name: &str, scenario: &Scenario) {
        let asked = LengthField::ALL.map(|field| (field.key(), "output", scenario.tokens_under(field)));
        let given = [("prompt_tokens", "prompt", scenario.prompt_tokens)].into_iter().chain(asked);
        for (field, side, tokens) in given.filter_map(|(field, side, tokens)| Some((field, side, tokens?))) {
            let message = format!("`{field}` and `lengths` of scenario `{name}` both set the length of a request");
            let remedy =
                format!("keep one of the two fields; to set a single length in `lengths`, write `{side}: {tokens}`");
            let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy(remedy);
            diagnostic.related.extend(self.key_of(&steps!["scenarios", name, "lengths"], "lengths are set here"));
            self.report_key(&steps!["scenarios", name, field], diagnostic);
        }
    }

    /// Whether lengths are specified in exactly one way, and completely.
    fn one_form(&mut self, at: &[Step], lengths: &WrittenLengths) -> bool {
        let WrittenLengths { preset, shape, prompt, output, pairs, histogram, data } = lengths;
        let each = prompt.is_some() || output.is_some();
        let forms = [
            (preset.is_some(), "preset"),
            (each, if prompt.is_some() { "prompt" } else { "output" }),
            (pairs.is_some(), "pairs"),
            (histogram.is_some(), "histogram"),
            (data.is_some(), "data"),
        ];
        let given: Vec<&str> = forms.into_iter().filter(|(given, _)| *given).map(|(_, key)| key).collect();
        if shape.is_some() && preset.is_none() {
            let message = "`shape` determines how a preset is read, but there is no preset";
            let remedy = "add `preset: chat`, or remove `shape`; to set a median and a sigma, write { lognormal: { \
                          median: 500, sigma: 0.8, … } }";
            self.report_key(&[at, &steps!["shape"]].concat(), Diagnostic::new(Code::NoEffect, message).remedy(remedy));
        }
        if self.tree.walk(at).node.is_damaged() {
            return given.len() == 1;
        }
        if let [first, second, ..] = given[..] {
            let message = format!("`{first}` and `{second}` both set the lengths");
            let mut diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two");
            diagnostic.related.extend(self.key_of(&[at, &steps![first]].concat(), "first here"));
            self.report_key(&[at, &steps![second]].concat(), diagnostic);
            return false;
        }
        let missing = match (given.first(), prompt, output) {
            (None, ..) => {
                let remedy = "write `preset: chat`, or both `prompt` and `output`, or `pairs: [[256, 1024]]`";
                let message = "`lengths` is empty";
                self.report_key(at, Diagnostic::new(Code::Empty, message).remedy(remedy));
                return false;
            }
            (_, Some(_), None) => Some(("output", "prompt")),
            (_, None, Some(_)) => Some(("prompt", "output")),
            _ => None,
        };
        if let Some((missing, given)) = missing {
            let message = format!("`lengths` has `{given}` but no `{missing}`");
            let remedy = format!("add `{missing}: 256` for a single length, or a distribution");
            self.report_key(at, Diagnostic::new(Code::MissingField, message).remedy(remedy));
        }
        missing.is_none()
    }

    fn distribution(&mut self, at: &[Step], written: &WrittenDistribution, side: Side) {
        let WrittenDistribution { constant, uniform, normal, lognormal, histogram } = written;
        let forms = [
            (constant.is_some(), "constant"),
            (uniform.is_some(), "uniform"),
            (normal.is_some(), "normal"),
            (lognormal.is_some(), "lognormal"),
            (histogram.is_some(), "histogram"),
        ];
        let given: Vec<&str> = forms.into_iter().filter(|(given, _)| *given).map(|(_, key)| key).collect();
        let inside = |key: &str| [at, &steps![key]].concat();
        match given[..] {
            [] => {
                let remedy = "write a number, or { lognormal: { mean: 500, sd: 300, min: 50, max: 4000 } }";
                return self.empty(at, "this distribution is empty", remedy);
            }
            [first, second, ..] => {
                let message = format!("`{first}` and `{second}` are both set, but a length has only one distribution");
                let diagnostic = Diagnostic::new(Code::Contradiction, message).remedy("keep one of the two");
                return self.report_key(&inside(second), diagnostic);
            }
            [_] => {}
        }
        if let Some(tokens) = constant {
            let is_short = matches!(self.tree.walk(at).node.value, Value::Int(_));
            let at = if is_short { at.to_vec() } else { inside("constant") };
            self.tokens_in_range(&at, "constant", *tokens, side);
        }
        if let Some(range) = uniform {
            self.bounds(&inside("uniform"), ("min", "max"), (range.min, range.max), side);
        }
        if let Some(normal) = normal {
            self.normal(&inside("normal"), normal, side);
        }
        if let Some(lognormal) = lognormal {
            self.lognormal(&inside("lognormal"), lognormal, side);
        }
        if let Some(rows) = histogram {
            self.buckets(&inside("histogram"), rows.len(), |index| {
                (vec![("min", "max", (rows[index].min, rows[index].max), side)], rows[index].weight)
            });
        }
    }

    fn normal(&mut self, at: &[Step], WrittenNormal { mean, sd, min, max }: &WrittenNormal, side: Side) {
        let bounds = self.bounds(at, ("min", "max"), (*min, *max), side).then_some((*min, *max));
        self.centre(at, "mean", *mean, bounds);
        self.spread(at, "sd", *sd, Decimal::from(MOST_TOKENS));
    }

    fn lognormal(&mut self, at: &[Step], written: &WrittenLognormal, side: Side) {
        let WrittenLognormal { mean, sd, median, sigma, min, max } = written;
        let bounds = self.bounds(at, ("min", "max"), (*min, *max), side).then_some((*min, *max));
        match (mean, sd, median, sigma) {
            (Some(mean), Some(sd), None, None) => {
                self.centre(at, "mean", *mean, bounds);
                self.spread(at, "sd", *sd, Decimal::from(MOST_TOKENS));
            }
            (None, None, Some(median), Some(sigma)) => {
                self.centre(at, "median", *median, bounds);
                self.spread(at, "sigma", *sigma, MOST_SIGMA);
            }
            _ if self.tree.walk(at).node.is_damaged() => {}
            _ => {
                let message = "a lognormal distribution needs either `mean` and `sd`, or `median` and `sigma`";
                let remedy = "write { mean: 500, sd: 300, min: 50, max: 4000 }";
                self.report_key(at, Diagnostic::new(Code::Contradiction, message).remedy(remedy));
            }
        }
    }

    /// Reports a mean or median outside the truncation bounds.
    fn centre(&mut self, at: &[Step], field: &str, value: Decimal, bounds: Option<(u32, u32)>) {
        let Some((min, max)) = bounds else { return };
        if value < Decimal::from(min) || value > Decimal::from(max) {
            let message = format!("`{field}` must be between `min` and `max` ({min} to {max}), but it is {value}");
            let remedy = "this value describes the distribution before truncation; if it is outside the bounds, hardly \
                          any of the lengths sent are close to it";
            let at = [at, &steps![field]].concat();
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    fn spread(&mut self, at: &[Step], field: &str, value: Decimal, most: Decimal) {
        if !value.is_positive() || value > most {
            let message = format!("`{field}` must be a number above 0, up to {most}, not {value}");
            let remedy = "for a single length, write only the number of tokens";
            let at = [at, &steps![field]].concat();
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
    }

    /// Checks that a number of tokens is within the range that can be sent.
    fn tokens_in_range(&mut self, at: &[Step], field: &str, tokens: u32, Side(least): Side) -> bool {
        let good = (least..=MOST_TOKENS).contains(&tokens);
        if !good {
            let wanted = format!("a whole number from {least} to {MOST_TOKENS}");
            let message = format!("`{field}` must be {wanted}, not {tokens}");
            let remedy = format!("write {wanted}");
            self.report(at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        good
    }

    /// Checks two bounds: each must be a number of tokens that can be sent, and the lower must not exceed the
    /// upper.
    fn bounds(&mut self, at: &[Step], (low, high): (&str, &str), (min, max): (u32, u32), side: Side) -> bool {
        let inside = |key: &str| [at, &steps![key]].concat();
        let good = [(low, min), (high, max)].map(|(key, value)| self.tokens_in_range(&inside(key), key, value, side));
        if good.contains(&false) {
            return false;
        }
        if min > max {
            let message = format!("`{low}` is {min} but `{high}` is only {max}");
            let mut diagnostic = Diagnostic::new(Code::OutOfRange, message).remedy("write the smaller number first");
            diagnostic.related.push((self.tree.walk(&inside(high)).span(), "the maximum".to_owned()));
            self.report(&inside(low), diagnostic);
        }
        min <= max
    }

    /// Checks a table of buckets: the ranges of each row must be valid, and it must be possible to draw
    /// from the table. `row` returns the ranges and the weight of a row.
    fn buckets<'k>(
        &mut self,
        at: &[Step],
        rows: usize,
        row: impl Fn(usize) -> (Vec<(&'k str, &'k str, (u32, u32), Side)>, Decimal),
    ) {
        for index in 0..rows {
            let at = [at, &steps![index]].concat();
            for (low, high, range, side) in row(index).0 {
                self.bounds(&at, (low, high), range, side);
            }
        }
        self.weights(at, rows, |index| row(index).1);
    }

    /// Checks a list of pairs of lengths. `row` returns the lengths and the weight of a pair.
    fn pairs_of_lengths<'k>(
        &mut self,
        at: &[Step],
        rows: usize,
        row: impl Fn(usize) -> (Vec<(&'k str, u32, Side)>, Decimal),
    ) {
        for index in 0..rows {
            let at = [at, &steps![index]].concat();
            let is_list = matches!(self.tree.walk(&at).node, Node { value: Value::List(_), .. });
            for (place, (field, tokens, side)) in row(index).0.into_iter().enumerate() {
                let last = if is_list { Step::from(place) } else { Step::from(field) };
                self.tokens_in_range(&[&at[..], &[last]].concat(), field, tokens, side);
            }
        }
        self.weights(at, rows, |index| row(index).1);
    }

    /// Reports weights below zero, and a table in which all weights are zero.
    fn weights(&mut self, at: &[Step], rows: usize, weight: impl Fn(usize) -> Decimal) {
        let zero = Decimal::default();
        for index in (0..rows).filter(|index| weight(*index) < zero) {
            let row = [at, &steps![index]].concat();
            let last = match &self.tree.walk(&row).node.value {
                Value::List(_) => Step::from(2),
                _ => Step::from("weight"),
            };
            let message = format!("a weight must not be below 0, but this one is {}", weight(index));
            let remedy = "write how often this row occurs, relative to the sum of all weights";
            let at = [&row[..], &[last]].concat();
            self.report(&at, Diagnostic::new(Code::OutOfRange, message).remedy(remedy));
        }
        if (0..rows).all(|index| weight(index) == zero) {
            let remedy = "write at least one row with a weight above 0";
            self.empty(at, "all weights of this table are 0, so no length can be drawn from it", remedy);
        }
    }
}
