//! Random matrices, and their cells according to the documented rules. This implementation is independent
//! of the code under test: it creates every combination and then removes the combinations that the rules
//! exclude.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// One cell: fields and values, in plan order.
pub(crate) type Row = Vec<(String, Value)>;

/// Fields that must match, each with the values that it accepts: a value, a list, or bounds.
pub(crate) type Rule = Vec<(String, Value)>;

/// One point of an axis.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub fields: Row,
    pub when: Option<Rule>,
}

/// One axis: its name in the matrix, its points, and how they are written.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub name: String,
    pub points: Vec<Point>,
    pub(crate) as_zip: bool,
}

/// The matrix of a sweep, with its rules.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub axes: Vec<Axis>,
    pub when: Option<Rule>,
    pub exclude: Vec<Rule>,
    pub extend: Vec<(Rule, Row)>,
    pub add: Vec<Row>,
}

fn table(row: &[(String, Value)]) -> Value {
    Value::Object(row.iter().cloned().collect::<Map<_, _>>())
}

impl Axis {
    fn json(&self) -> Value {
        if self.as_zip {
            let list =
                |at: usize| json!(self.points.iter().map(|point| point.fields[at].1.clone()).collect::<Vec<_>>());
            let names = self.points[0].fields.iter().map(|(name, _)| name.clone()).enumerate();
            return json!({ "zip": names.map(|(at, name)| (name, list(at))).collect::<Map<_, _>>() });
        }
        let point = |point: &Point| {
            let mut value = match &point.fields[..] {
                [(name, value)] if *name == self.name && point.when.is_none() => return value.clone(),
                [(name, value)] if *name == self.name => json!({ "value": value }),
                fields => table(fields),
            };
            if let Some(when) = &point.when {
                value["when"] = table(when);
            }
            value
        };
        self.points.iter().map(point).collect()
    }
}

impl Matrix {
    /// Returns the sweep as written in a plan.
    pub(crate) fn json(&self) -> Value {
        let axes = self.axes.iter().map(|axis| (axis.name.clone(), axis.json())).collect::<Map<_, _>>();
        let mut sweep = json!({ "matrix": axes, "repeats": 2 });
        if let Some(when) = &self.when {
            sweep["when"] = table(when);
        }
        let tables = |rows: &[Row]| json!(rows.iter().map(|row| table(row)).collect::<Vec<_>>());
        sweep["exclude"] = tables(&self.exclude);
        let extend = |(when, with): &(Rule, Row)| json!({ "when": table(when), "with": table(with) });
        sweep["extend"] = self.extend.iter().map(extend).collect();
        sweep["add"] = tables(&self.add);
        sweep
    }

    /// Returns every combination that the axes allow and `when` keeps, before `exclude`.
    pub(crate) fn combinations(&self) -> Vec<Row> {
        let mut all: Vec<Vec<Option<&Point>>> = vec![Vec::new()];
        for axis in &self.axes {
            let mut choices: Vec<Option<&Point>> = axis.points.iter().map(Some).collect();
            choices.push(None);
            all = all.iter().flat_map(|before| choices.iter().map(|one| [&before[..], &[*one]].concat())).collect();
        }
        let allowed = |choice: &Vec<Option<&Point>>| {
            let row = row(choice);
            self.axes.iter().zip(choice).all(|(axis, point)| {
                let applies = |point: &Point| point.when.as_ref().is_none_or(|when| matches(when, &row));
                match point {
                    Some(point) => applies(point),
                    None => !axis.points.iter().any(applies),
                }
            })
        };
        let kept = |row: &Row| self.when.as_ref().is_none_or(|when| matches(when, row));
        all.iter().filter(|choice| allowed(choice)).map(|choice| row(choice)).filter(kept).collect()
    }

    /// Returns the combinations that no exclude removes.
    pub(crate) fn left(&self) -> Vec<Row> {
        let excluded = |row: &Row| self.exclude.iter().any(|rule| matches(rule, row));
        self.combinations().into_iter().filter(|row| !excluded(row)).collect()
    }

    /// Returns all cells, in order; `None` if a rule would change or repeat a cell.
    pub(crate) fn cells(&self) -> Option<Vec<Row>> {
        let mut cells = Vec::new();
        for row in self.left() {
            let mut cell = row.clone();
            for (name, value) in self.extend.iter().filter(|(when, _)| matches(when, &row)).flat_map(|(_, with)| with) {
                if cell.iter().any(|(known, _)| known == name) {
                    return None;
                }
                cell.push((name.clone(), value.clone()));
            }
            cells.push(cell);
        }
        let same = |a: &Row, b: &Row| a.len() == b.len() && a.iter().all(|field| b.contains(field));
        for add in &self.add {
            if cells.iter().any(|cell| same(cell, add)) {
                return None;
            }
            let mut cell = add.clone();
            let fields = self.axes.iter().flat_map(|axis| &axis.points).flat_map(|point| &point.fields);
            let order: Vec<&String> = fields.map(|(name, _)| name).collect();
            cell.sort_by_key(|(name, _)| order.iter().position(|known| *known == name).unwrap_or(usize::MAX));
            cells.push(cell);
        }
        Some(cells)
    }

    /// Returns whether every rule has an effect: `check` must determine this without creating a cell.
    pub(crate) fn makes_sense(&self) -> bool {
        let all = self.combinations();
        let left = self.left();
        let points = || self.axes.iter().flat_map(|axis| &axis.points);
        let on_axis = |name: &String, one: &Value| {
            points().flat_map(|point| &point.fields).any(|(field, value)| field == name && takes(one, value))
        };
        let each_is_on_axis = |rule: &Rule| {
            rule.iter().all(|(name, wanted)| match wanted {
                Value::Array(list) => list.iter().all(|one| on_axis(name, one)),
                one => on_axis(name, one),
            })
        };
        let alive = |rule: &Rule| each_is_on_axis(rule) && all.iter().any(|row| matches(rule, row));
        let has_load = |cell: &Row| cell.iter().any(|(name, _)| name == "batch_size" || name == "qps");
        points().filter_map(|point| point.when.as_ref()).chain(&self.when).chain(&self.exclude).all(alive)
            && !left.is_empty()
            && self.extend.iter().all(|(when, _)| alive(when) && left.iter().any(|row| matches(when, row)))
            && self.cells().is_some_and(|cells| cells.iter().all(has_load))
    }
}

fn row(choice: &[Option<&Point>]) -> Row {
    choice.iter().flatten().flat_map(|point| point.fields.clone()).collect()
}

fn matches(rule: &Rule, row: &Row) -> bool {
    rule.iter().all(|(name, wanted)| row.iter().any(|(field, value)| field == name && takes(wanted, value)))
}

fn takes(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::Array(list) => list.iter().any(|one| takes(one, value)),
        Value::Object(bounds) => value.as_i64().is_some_and(|value| {
            bounds.get("from").is_none_or(|from| from.as_i64().is_some_and(|from| from <= value))
                && bounds.get("to").is_none_or(|to| to.as_i64().is_some_and(|to| value <= to))
        }),
        one => one == value,
    }
}

/// Returns a value that a rule may require of a field. Some of these values are not on the field's axis.
fn wanted(name: &str) -> BoxedStrategy<Value> {
    if name == "endpoint" {
        let one = || proptest::sample::select(vec![json!("vllm"), json!("demo"), json!("other")]);
        return prop_oneof![one(), proptest::collection::vec(one(), 1..3).prop_map(Value::from)].boxed();
    }
    let one = || (16i64..20).prop_map(Value::from);
    let bounds = (15i64..20, 0i64..4).prop_map(|(from, more)| json!({ "from": from, "to": from + more }));
    let open = prop_oneof![
        (15i64..20).prop_map(|from| json!({ "from": from })),
        (16i64..21).prop_map(|to| json!({ "to": to }))
    ];
    prop_oneof![3 => one(), 1 => proptest::collection::vec(one(), 1..3).prop_map(Value::from), 1 => bounds, 1 => open]
        .boxed()
}

fn rule(names: &'static [&'static str], most: usize) -> impl Strategy<Value = Rule> {
    proptest::sample::subsequence(names.to_vec(), 1..=most).prop_flat_map(|names| {
        names.into_iter().map(|name| wanted(name).prop_map(move |wanted| (name.to_owned(), wanted))).collect::<Vec<_>>()
    })
}

const ALL: &[&str] = &["endpoint", "batch_size", "prompt_tokens", "output_tokens", "turns"];

/// Generates the points of a single axis. Conditional points depend on `others`.
fn own(name: &'static str, others: &'static [&'static str]) -> impl Strategy<Value = Axis> {
    let when = move || proptest::option::weighted(0.3, rule(others, 2));
    proptest::sample::subsequence(vec![16i64, 17, 18, 19], 1..=3).prop_flat_map(move |values| {
        let whens = proptest::collection::vec(when(), values.len());
        whens.prop_map(move |whens| {
            let point =
                |(value, when): (&i64, Option<Rule>)| Point { fields: vec![(name.to_owned(), json!(value))], when };
            Axis { name: name.to_owned(), points: values.iter().zip(whens).map(point).collect(), as_zip: false }
        })
    })
}

/// Generates prompt and output lengths that vary together: as a zip, or as tables that may be conditional and
/// may lack the output length.
fn shape() -> impl Strategy<Value = Axis> {
    let pair = (16i64..19, 16i64..19, any::<bool>(), proptest::option::weighted(0.2, rule(&["endpoint"], 1)));
    (proptest::collection::vec(pair, 1..4), any::<bool>()).prop_map(|(pairs, as_zip)| {
        let mut points: Vec<Point> = Vec::new();
        for (prompt, output, whole, when) in pairs {
            let mut fields = vec![("prompt_tokens".to_owned(), json!(prompt))];
            if whole || as_zip {
                fields.push(("output_tokens".to_owned(), json!(output)));
            }
            if !points.iter().any(|point| point.fields == fields) {
                points.push(Point { fields, when: when.filter(|_| !as_zip) });
            }
        }
        Axis { name: "shape".to_owned(), points, as_zip }
    })
}

fn endpoints() -> impl Strategy<Value = Axis> {
    proptest::sample::subsequence(vec!["vllm", "demo", "other"], 1..=3).prop_map(|names| {
        let point = |name: &&str| Point { fields: vec![("endpoint".to_owned(), json!(name))], when: None };
        Axis { name: "endpoint".to_owned(), points: names.iter().map(point).collect(), as_zip: false }
    })
}

/// Returns an axis with a single value. It is used for the axes that every generated plan has.
fn always(name: &str, value: &str) -> Axis {
    let point = Point { fields: vec![(name.to_owned(), json!(value))], when: None };
    Axis { name: name.to_owned(), points: vec![point], as_zip: false }
}

fn added() -> impl Strategy<Value = Row> {
    let endpoint = proptest::sample::select(vec!["vllm", "demo"]);
    (endpoint, 16i64..20, proptest::option::of(16i64..19)).prop_map(|(endpoint, batch, prompt)| {
        let mut cell: Row = vec![
            ("endpoint".into(), json!(endpoint)),
            ("model".into(), json!("small")),
            ("scenario".into(), json!("D")),
            ("batch_size".into(), json!(batch)),
        ];
        cell.extend(prompt.map(|prompt| ("prompt_tokens".to_owned(), json!(prompt))));
        cell
    })
}

/// Returns a sweep with every kind of rule.
pub(crate) fn matrix() -> impl Strategy<Value = Matrix> {
    let axes = (
        endpoints(),
        own("batch_size", &["endpoint", "prompt_tokens"]),
        shape(),
        own("turns", &["batch_size", "endpoint"]),
    );
    let axes =
        (axes, any::<bool>(), any::<bool>()).prop_map(|((endpoint, batch, shape, turns), with_turns, turned)| {
            let mut axes = vec![always("model", "small"), always("scenario", "D"), endpoint, batch, shape];
            axes.extend(with_turns.then_some(turns));
            if turned {
                axes.reverse();
            }
            axes
        });
    let extend = (rule(ALL, 2), prop_oneof![Just("temperature"), Just("top_p"), Just("output_tokens")], 1i64..2)
        .prop_map(|(when, name, value)| (when, vec![(name.to_owned(), json!(value))]));
    let several = |most: usize| proptest::collection::vec(rule(ALL, 2), 0..most);
    (
        axes,
        proptest::option::weighted(0.2, rule(ALL, 1)),
        several(3),
        proptest::collection::vec(extend, 0..2),
        proptest::collection::vec(added(), 0..2),
    )
        .prop_map(|(axes, when, exclude, extend, add)| Matrix { axes, when, exclude, extend, add })
}
