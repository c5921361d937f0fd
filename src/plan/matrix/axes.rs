//! The axes of a sweep, with all values listed.

use std::collections::HashMap;

use crate::plan::model::matrix::{Axis, Condition, Item, What};
use crate::plan::model::scalar::Scalar;
use crate::plan::model::sweep::Sweep;
use crate::plan::model::take::Take;
use crate::plan::text::tree::Step;

/// The reason why no cells can be built from a matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// A zip with lists of different lengths.
    #[error("the lists of `{axis}` differ in length: {lists}")]
    UnequalZip {
        /// The axis.
        axis: String,
        /// The lists and their lengths, as text.
        lists: String,
    },
    /// A field that two axes set.
    #[error("`{field}` is set by axis `{first}` and by axis `{second}`")]
    FieldTwice {
        /// The field.
        field: String,
        /// The axis that sets it first.
        first: String,
        /// The axis that sets it again.
        second: String,
    },
    /// A zip contains something other than plain values.
    #[error("`{field}` in the zip of `{axis}` contains a `when`, a value taken from another sweep, or a table of axes")]
    InZip {
        /// The axis.
        axis: String,
        /// The field whose list contains it.
        field: String,
    },
    /// Axes whose `when`s depend on each other.
    #[error("dependency cycle between the `when`s of axes: {}", .0.join(" → "))]
    Circle(Vec<String>),
}

/// One value of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The field, as an index into [`Axes::names`].
    pub name: usize,
    /// The value.
    pub value: Scalar,
    /// The index of the list element in which the value is written.
    item: usize,
    /// The index within the element's `value` list; `None` if the element has no such list.
    inside: Option<usize>,
}

/// One point of an axis: a value, or several that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Point<'p> {
    /// The values of the point.
    pub fields: Vec<Field>,
    /// The cells to which the point applies; `None` if it applies to all.
    pub when: Option<&'p Condition>,
}

/// The axes of a sweep, with all values listed.
#[derive(Debug, Clone)]
pub struct Axes<'p> {
    /// Names of the fields.
    pub names: Vec<&'p str>,
    /// For each field: the index of the axis that sets it.
    pub given_by: Vec<usize>,
    /// Axes by name, in declared order, each with its points.
    pub axes: Vec<(&'p str, Vec<Point<'p>>)>,
}

impl<'p> Axes<'p> {
    /// Lists the values of the axes of `sweep`.
    pub fn new(sweep: &'p Sweep) -> Result<Axes<'p>, GridError> {
        let mut axes = Axes { names: Vec::new(), given_by: Vec::new(), axes: Vec::new() };
        let mut ids = HashMap::new();
        for (name, axis) in &sweep.matrix {
            let points = match axis {
                Axis::Values(items) => axes.points(name, items, &mut ids)?,
                Axis::Zip(zip) => {
                    let lists = zip.lists.iter().map(|(field, list)| (field.as_str(), &list.0[..]));
                    axes.zipped(name, lists, zip.when.as_ref(), &mut ids)?
                }
            };
            axes.axes.push((name, points));
        }
        Ok(axes)
    }

    /// The id of a field. A new field gets the next id and is assigned to the current axis.
    fn id(&mut self, field: &'p str, ids: &mut HashMap<&'p str, usize>) -> Result<usize, GridError> {
        let axis = self.axes.len();
        let next = self.names.len();
        let id = *ids.entry(field).or_insert(next);
        if id == next {
            self.names.push(field);
            self.given_by.push(axis);
        }
        Ok(id)
    }

    fn claim(&mut self, axis: &str, field: &'p str, ids: &mut HashMap<&'p str, usize>) -> Result<usize, GridError> {
        let id = self.id(field, ids)?;
        match self.axes.get(self.given_by[id]) {
            None => Ok(id),
            Some((first, _)) => Err(GridError::FieldTwice {
                field: field.to_owned(),
                first: (*first).to_owned(),
                second: axis.to_owned(),
            }),
        }
    }

    fn points(
        &mut self,
        axis: &'p str,
        items: &'p [Item],
        ids: &mut HashMap<&'p str, usize>,
    ) -> Result<Vec<Point<'p>>, GridError> {
        let mut points = Vec::new();
        for (item, written) in items.iter().enumerate() {
            let when = written.when.as_ref();
            if let What::Fields(table) = &written.what {
                let mut fields = Vec::with_capacity(table.len());
                for (field, value) in table {
                    let name = self.claim(axis, field, ids)?;
                    fields.push(Field { name, value: value.clone(), item, inside: None });
                }
                points.push(Point { fields, when });
                continue;
            }
            let name = self.claim(axis, axis, ids)?;
            let point = |(value, inside)| Point { fields: vec![Field { name, value, item, inside }], when };
            points.extend(values(written).map(point));
        }
        Ok(points)
    }

    fn zipped(
        &mut self,
        axis: &str,
        lists: impl Iterator<Item = (&'p str, &'p [Item])>,
        when: Option<&'p Condition>,
        ids: &mut HashMap<&'p str, usize>,
    ) -> Result<Vec<Point<'p>>, GridError> {
        let mut points: Vec<Point> = Vec::new();
        let mut lengths: Vec<(&str, usize)> = Vec::new();
        for (field, items) in lists {
            let name = self.claim(axis, field, ids)?;
            let mut length = 0;
            for (item, written) in items.iter().enumerate() {
                if written.when.is_some() || matches!(written.what, What::Fields(_) | What::Taken(_)) {
                    return Err(GridError::InZip { axis: axis.to_owned(), field: field.to_owned() });
                }
                for (value, inside) in values(written) {
                    if length == points.len() && lengths.is_empty() {
                        points.push(Point { fields: Vec::new(), when });
                    }
                    if let Some(point) = points.get_mut(length) {
                        point.fields.push(Field { name, value, item, inside });
                    }
                    length += 1;
                }
            }
            lengths.push((field, length));
        }
        if lengths.iter().any(|(_, length)| *length != points.len()) {
            let shown: Vec<String> = lengths.iter().map(|(field, length)| format!("`{field}` has {length}")).collect();
            return Err(GridError::UnequalZip { axis: axis.to_owned(), lists: shown.join(", ") });
        }
        Ok(points)
    }

    /// The id of a field, which is its index in `names`; `None` if no axis sets it.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }

    /// Every value of a field, in written order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &Scalar> {
        self.fields(name).map(|(_, field)| &field.value)
    }

    /// Every value of a field, in written order, each with the index of the axis that sets it.
    pub fn fields(&self, name: &str) -> impl Iterator<Item = (usize, &Field)> {
        let id = self.field(name);
        let axis = id.map(|id| self.given_by[id]);
        let points = axis.into_iter().flat_map(|axis| self.axes[axis].1.iter().map(move |point| (axis, point)));
        let fields = points.flat_map(|(axis, point)| point.fields.iter().map(move |field| (axis, field)));
        fields.filter(move |(_, field)| Some(field.name) == id)
    }

    /// The reference to an earlier sweep from which a value of an axis is taken; `None` for other values.
    pub fn taken<'w>(&self, field: &Field, written: &'w Axis) -> Option<&'w Take> {
        let Axis::Values(items) = written else { return None };
        match &items.get(field.item)?.what {
            What::Taken(take) => Some(take),
            What::Values(_) | What::Range(_) | What::Fields(_) => None,
        }
    }

    /// The place where a value of an axis is written, relative to the sweep and starting with
    /// `matrix`.
    pub fn place(&self, axis: usize, field: &Field, written: &Axis) -> Vec<Step> {
        let name = self.names[field.name];
        let mut steps = vec![Step::from("matrix"), Step::from(self.axes[axis].0)];
        let of_fields = match written {
            Axis::Zip(_) => {
                steps.extend([Step::from("zip"), Step::from(name)]);
                false
            }
            Axis::Values(items) => matches!(items[field.item].what, What::Fields(_)),
        };
        steps.push(Step::from(field.item));
        steps.extend(of_fields.then(|| Step::from(name)));
        steps.extend(field.inside.into_iter().flat_map(|inside| [Step::from("value"), Step::from(inside)]));
        steps
    }
}

/// The values of an element of a list. Each has its index in the element's `value` list, or `None` if the
/// element has no such list.
fn values(item: &Item) -> Box<dyn Iterator<Item = (Scalar, Option<usize>)> + '_> {
    let is_plain = item.when.is_none() && item.len() == 1;
    match &item.what {
        What::Values(values) => {
            Box::new(values.iter().cloned().enumerate().map(move |(at, value)| (value, (!is_plain).then_some(at))))
        }
        What::Range(range) => Box::new(range.values().map(|value| (Scalar::Number(value), None))),
        What::Taken(take) => Box::new(std::iter::once((Scalar::Text(take.to_string()), None))),
        What::Fields(_) => Box::new(std::iter::empty()),
    }
}
