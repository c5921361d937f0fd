//! The fields and values that the cells of a sweep may have.

use crate::plan::matrix::axes::Axes;
use crate::plan::model::gate::AskedMetric;
use crate::plan::model::matrix::{Axis, Condition, What};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::table::Table;
use crate::plan::model::take::Take;
use crate::plan::text::tree::Step;

/// A load of a matrix that is derived from an earlier sweep.
#[derive(Debug, Clone)]
pub struct TakenLoad<'s> {
    /// Its axis.
    pub axis: &'s str,
    /// The definition of the load.
    pub take: &'s Take,
    /// Cells to which it applies; `None` for all.
    pub when: Option<&'s Condition>,
    /// The place in the plan where it is written, relative to the sweep.
    pub place: Vec<Step>,
}

impl Sweep {
    /// Every value of `field` that a cell may have, as far as the matrix, `extend` and `add` list it.
    /// Each value occurs once, in written order.
    pub fn values(&self, field: &str) -> Vec<Scalar> {
        self.written(field).into_iter().map(|(value, _)| value).collect()
    }

    /// The same values, each with the place where it is first written, relative to the sweep.
    pub fn written(&self, field: &str) -> Vec<(Scalar, Vec<Step>)> {
        let mut written: Vec<(Scalar, Vec<Step>)> = Vec::new();
        if let Ok(axes) = Axes::new(self) {
            let places =
                axes.fields(field).map(|(axis, one)| (one.value.clone(), axes.place(axis, one, &self.matrix[axis])));
            written.extend(places);
        }
        let steps = |word: &str, index: usize| vec![Step::from(word), Step::from(index)];
        for (index, extend) in self.extend.iter().enumerate() {
            let place = || [steps("extend", index), vec!["with".into(), field.into()]].concat();
            written.extend(extend.with.get(field).map(|value| (value.clone(), place())));
        }
        for (index, cell) in self.add.iter().enumerate() {
            let place = || [steps("add", index), vec![field.into()]].concat();
            written.extend(cell.get(field).map(|value| (value.clone(), place())));
        }
        let mut seen = std::collections::HashSet::new();
        written.retain(|(value, _)| seen.insert(value.clone()));
        written
    }

    /// The loads that are derived from earlier sweeps.
    pub fn takes(&self) -> impl Iterator<Item = TakenLoad<'_>> {
        let lists = self.matrix.iter().filter_map(|(axis, written)| match written {
            Axis::Values(items) => Some((axis.as_str(), items)),
            Axis::Zip(_) => None,
        });
        lists.flat_map(|(axis, items)| {
            items.iter().enumerate().filter_map(move |(index, item)| match &item.what {
                What::Taken(take) => {
                    let place = vec!["matrix".into(), axis.into(), index.into()];
                    Some(TakenLoad { axis, take, when: item.when.as_ref(), place })
                }
                What::Values(_) | What::Range(_) | What::Fields(_) => None,
            })
        })
    }

    /// The results of earlier sweeps that it uses: each sweep with its metric.
    pub fn asks(&self) -> impl Iterator<Item = (&str, AskedMetric)> {
        let takes = self.takes().map(|TakenLoad { take, .. }| (take.from.as_str(), take.take.into()));
        let skips = self.skip_if.iter().map(|skip| (skip.sweep.as_str(), skip.metric));
        takes.chain(skips).chain(self.gate.iter().map(|gate| (gate.sweep.as_str(), gate.metric)))
    }

    /// Every field that a cell may have, in written order.
    pub fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<&str> = Vec::new();
        for (name, axis) in &self.matrix {
            match axis {
                Axis::Zip(zip) => fields.extend(zip.lists.keys().map(String::as_str)),
                Axis::Values(items) => items.iter().for_each(|item| match &item.what {
                    What::Fields(table) => fields.extend(table.keys().map(String::as_str)),
                    What::Values(_) | What::Range(_) | What::Taken(_) => fields.push(name),
                }),
            }
        }
        fields.extend(self.extend.iter().flat_map(|extend| extend.with.keys()).map(String::as_str));
        fields.extend(self.add.iter().flat_map(Table::keys).map(String::as_str));
        let mut seen = std::collections::HashSet::new();
        fields.retain(|field| seen.insert(*field));
        fields
    }
}
