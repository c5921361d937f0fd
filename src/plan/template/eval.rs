//! Evaluates expressions. This is the only file that uses minijinja's engine.

use indexmap::IndexMap;
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior, Value as Jinja, filters};

use crate::plan::diagnostic::error::{Code, MOST_MISTAKES};
use crate::plan::diagnostic::suggest;
use crate::plan::template::convert::{NoValue, Room, as_text, from_jinja, size, to_jinja};
use crate::plan::template::segments::{Mistake, Part, parts, without_texts, word};
use crate::plan::text::span::Span;
use crate::plan::text::tree::{Node, Value};

/// Maximum number of steps of one expression.
const FUEL: u64 = 10_000;

/// Maximum amount of work, in bytes, for all expressions of a plan. The work of an expression is its length
/// times the size of the largest value that it uses.
const MOST_WORK: usize = 1 << 26;

/// Maximum number of variables that are recorded as origins of a value. More would not help readers.
const MOST_ORIGINS: usize = 8;

/// Filters that expressions may use. None of them turns a small value into a large one.
const FILTERS: [&str; 12] =
    ["abs", "first", "float", "int", "last", "length", "lower", "max", "min", "round", "trim", "upper"];

/// The names that each cell defines.
pub(crate) const NAMES_OF_CELLS: [&str; 4] = ["endpoint", "model", "port", "server"];

/// Evaluates expressions over the variables known so far.
pub(super) struct Evaluator {
    environment: Environment<'static>,
    variables: IndexMap<String, Variable>,
    room: Room,
    work_left: usize,
    /// Whether expressions may also use names that each cell defines.
    pub(super) in_cells: bool,
}

/// The value of a variable, and its place.
struct Variable {
    /// The value; `None` if it could not be computed.
    node: Option<Node>,
    value: Jinja,
    size: usize,
    /// The place where it is written.
    place: Span,
}

/// The result of a template.
pub(super) struct Made {
    /// The value.
    pub value: Value,
    /// The variables that it uses, directly or through other variables.
    pub(crate) via: Vec<(String, Span)>,
}

impl Evaluator {
    /// Creates an evaluator without variables.
    pub(crate) fn new() -> Evaluator {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(true);
        environment.add_filter("abs", filters::abs);
        environment.add_filter("first", filters::first);
        environment.add_filter("float", filters::float);
        environment.add_filter("int", filters::int);
        environment.add_filter("last", filters::last);
        environment.add_filter("length", filters::length);
        environment.add_filter("lower", filters::lower);
        environment.add_filter("max", filters::max);
        environment.add_filter("min", filters::min);
        environment.add_filter("round", filters::round);
        environment.add_filter("trim", filters::trim);
        environment.add_filter("upper", filters::upper);
        let room = Room { nodes: 50_000, bytes: 1 << 20 };
        Evaluator { environment, variables: IndexMap::new(), room, work_left: MOST_WORK, in_cells: false }
    }

    /// Declares a name before its value is known.
    pub(crate) fn declare(&mut self, name: &str, place: Span) {
        let variable = Variable { node: None, value: Jinja::UNDEFINED, size: 0, place };
        self.variables.insert(name.to_owned(), variable);
    }

    /// Sets the value of a declared variable.
    pub(crate) fn define(&mut self, name: &str, node: &Node) {
        if let Some(variable) = self.variables.get_mut(name) {
            variable.value = to_jinja(node);
            variable.size = size(node);
            variable.node = Some(node.clone());
        }
    }

    /// The variables that a template names, whether or not they exist.
    pub(crate) fn uses(&self, template: &str) -> Vec<String> {
        let names = |part: Part| match part {
            Part::Expression(range) => self.names_in(&template[range]),
            Part::Text(_) => Vec::new(),
        };
        parts(template).unwrap_or_default().into_iter().flat_map(names).collect()
    }

    /// Whether a template uses a name whose value is defined by the cell rather than by the plan.
    pub(super) fn names_a_cell(&self, template: &str) -> bool {
        self.uses(template).iter().any(|name| self.is_of_cell(name))
    }

    fn names_in(&self, expression: &str) -> Vec<String> {
        if multiplied_text(expression).is_some() {
            return Vec::new();
        }
        let compiled = self.environment.compile_expression(expression);
        compiled.map_or_else(|_| Vec::new(), |compiled| names(&compiled))
    }

    /// The result of the template at `span`; `None` if it depends on a variable that could not be
    /// computed.
    pub(crate) fn template(&mut self, template: &str, span: &Span) -> Result<Option<Made>, Vec<Mistake>> {
        let parts = parts(template).map_err(|mistake| vec![mistake])?;
        let is_blank = |part: &Part| matches!(part, Part::Text(range) if template[range.clone()].trim().is_empty());
        let mut spoken = parts.iter().filter(|part| !is_blank(part));
        if let (Some(Part::Expression(range)), None) = (spoken.next(), spoken.next()) {
            let made = self.expression(&template[range.clone()], span);
            return made.map_err(|mistakes| moved(mistakes, range.start));
        }
        self.text(template, &parts, span)
    }

    /// The result of a template that consists of more than a single expression. It is always a text.
    fn text(&mut self, template: &str, parts: &[Part], span: &Span) -> Result<Option<Made>, Vec<Mistake>> {
        let (mut text, mut via, mut mistakes, mut depends) = (String::new(), Vec::new(), Vec::new(), false);
        for part in parts {
            // If a limit is exceeded, the remaining expressions would exceed it too.
            if mistakes.len() >= MOST_MISTAKES
                || mistakes.last().is_some_and(|last: &Mistake| last.code == Code::TooLarge)
            {
                break;
            }
            match part {
                Part::Text(range) => text.push_str(&template[range.clone()]),
                Part::Expression(range) => match self.expression(&template[range.clone()], span) {
                    Err(found) => mistakes.extend(moved(found, range.start)),
                    Ok(None) => depends = true,
                    Ok(Some(made)) => match as_text(&made.value) {
                        Some(part) if !self.room.takes(text.len(), part.len()) => {
                            mistakes.push(mistake_of_value(NoValue::TooMuch, &template[range.clone()]));
                        }
                        Some(part) => {
                            text.push_str(&part);
                            let new: Vec<_> = made.via.into_iter().filter(|one| !via.contains(one)).collect();
                            via.extend(new);
                            via.truncate(MOST_ORIGINS);
                        }
                        None if matches!(made.value, Value::Null) => mistakes
                            .push(mistake_of_value(NoValue::Nothing, &template[range.clone()]).moved(range.start)),
                        None => mistakes.push(Mistake::new(
                            range.clone(),
                            "a list or table cannot be part of a string",
                            "make the expression the whole value: \"{{ … }}\"",
                        )),
                    },
                },
            }
        }
        match mistakes.is_empty() {
            true => Ok((!depends).then_some(Made { value: Value::Text(text), via })),
            false => Err(mistakes),
        }
    }

    /// Whether cells define this name. A variable of the plan with the same name takes precedence.
    pub(super) fn is_of_cell(&self, name: &str) -> bool {
        NAMES_OF_CELLS.contains(&name) && !self.variables.contains_key(name)
    }

    /// The dotted names that an expression uses, like `server.max_num_seqs`.
    pub(super) fn dotted_names(&self, expression: &str) -> Result<Vec<String>, Mistake> {
        if let Some(mistake) = multiplied_text(expression) {
            return Err(mistake);
        }
        let compiled = self.environment.compile_expression(expression);
        let compiled = compiled.map_err(|error| mistake_of(&error, expression))?;
        let mut names: Vec<String> = compiled.undeclared_variables(true).into_iter().collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Evaluates a template when the plan is loaded. Expressions that each cell evaluates stay as written.
    pub(super) fn keeping_cells(&mut self, template: &str, span: &Span) -> Result<Option<Made>, Vec<Mistake>> {
        let parts = parts(template).map_err(|mistake| vec![mistake])?;
        let (mut text, mut via, mut mistakes) = (String::new(), Vec::new(), Vec::new());
        for part in &parts {
            let range = match part {
                Part::Text(range) => {
                    text.push_str(&template[range.clone()]);
                    continue;
                }
                Part::Expression(range) => range,
            };
            let expression = &template[range.clone()];
            let names = self.names_in(expression);
            let (of_cell, of_plan): (Vec<_>, Vec<_>) = names.iter().partition(|name| self.is_of_cell(name));
            if of_cell.is_empty() {
                match self.expression(expression, span) {
                    Err(found) => mistakes.extend(moved(found, range.start)),
                    Ok(None) => return Ok(None),
                    Ok(Some(made)) => {
                        text.push_str(&as_text(&made.value).unwrap_or_default());
                        via.extend(made.via);
                    }
                }
            } else if let Some(name) = of_plan.first() {
                let message = format!(
                    "`{name}` is known when the plan is read, but `{}` only when the cell is known",
                    of_cell[0]
                );
                let remedy = "write separate expressions: \"{{ a }}{{ b }}\"";
                mistakes.push(Mistake::new(range.clone(), message, remedy));
            } else {
                text.push_str(&template[range.start - 2..range.end + 2]);
            }
        }
        if mistakes.is_empty() { Ok(Some(Made { value: Value::Text(text), via })) } else { Err(mistakes) }
    }

    /// The result of one expression.
    fn expression(&mut self, expression: &str, span: &Span) -> Result<Option<Made>, Vec<Mistake>> {
        if let Some(mistake) = multiplied_text(expression) {
            return Err(vec![mistake]);
        }
        let compiled = self.environment.compile_expression(expression);
        let compiled = compiled.map_err(|error| vec![mistake_of(&error, expression)])?;
        let used = names(&compiled);
        let unknown: Vec<Mistake> = used
            .iter()
            .filter(|name| !self.variables.contains_key(*name))
            .map(|name| self.unknown(name, expression))
            .collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let known: Vec<(&String, &Variable)> = used.iter().map(|name| (name, &self.variables[name])).collect();
        if known.iter().any(|(_, variable)| variable.node.is_none()) {
            return Ok(None);
        }
        let via = origins(&known);
        // If the expression is a single variable, the variable's value is copied unevaluated, so that its
        // parts keep their places.
        if let [(name, variable)] = &known[..]
            && expression.trim() == *name
            && let Some(node) = &variable.node
        {
            if !self.room.takes_copy(node.count(), variable.size) {
                return Err(vec![mistake_of_value(NoValue::TooMuch, expression)]);
            }
            return Ok(Some(Made { value: node.value.clone(), via }));
        }
        if let Some(mistake) = multiplied_variable(expression, &compiled, &known) {
            return Err(vec![mistake]);
        }
        let largest = known.iter().map(|(_, variable)| variable.size).max().unwrap_or(0);
        let work = expression.len() * (16 + largest);
        let context = Jinja::from_pairs(known.iter().map(|(name, variable)| (name.as_str(), variable.value.clone())));
        let Some(left) = self.work_left.checked_sub(work) else {
            return Err(vec![mistake_of_value(NoValue::TooMuch, expression)]);
        };
        self.work_left = left;
        let value = compiled.eval(context).map_err(|error| vec![mistake_of(&error, expression)])?;
        if value.is_none() {
            return Ok(Some(Made { value: Value::Null, via }));
        }
        let value = from_jinja(&value, span, &mut self.room);
        value.map(|value| Some(Made { value, via })).map_err(|error| vec![mistake_of_value(error, expression)])
    }

    fn unknown(&self, name: &str, expression: &str) -> Mistake {
        let of_cells = NAMES_OF_CELLS.into_iter().filter(|_| self.in_cells);
        let known = self.variables.keys().map(String::as_str);
        let at = word(expression, name).unwrap_or(0..expression.len());
        let after = expression[at.end..].trim_start();
        if after.starts_with('(') {
            let message = format!("unknown function `{name}`: expressions have no functions");
            return Mistake::new(at, message, "use a filter, like n | round, or write the value out");
        }
        let part = after.strip_prefix('.').map(|part| part.trim_end().to_owned());
        let remedy = match suggest::nearest(name, known.clone().chain(of_cells)) {
            _ if name == "vars" && part.as_ref().is_some_and(|part| self.variables.contains_key(part)) => {
                format!("write its name alone: {{{{ {} }}}}", part.unwrap_or_default())
            }
            Some(near) => format!("did you mean `{near}`?"),
            None if matches!(name, "null" | "nil") => "write none, which omits the key".to_owned(),
            None if self.variables.is_empty() => format!("add it to the plan: vars: {{ {name}: … }}"),
            None => format!("`vars` has {}", suggest::choices(known).replace(" or ", " and ")),
        };
        Mistake { code: Code::UnknownName, ..Mistake::new(at, format!("unknown variable `{name}`"), remedy) }
    }
}

/// The variables that an expression names, in a stable order.
fn names(compiled: &Expression<'_, '_>) -> Vec<String> {
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort_unstable();
    names
}

/// The names and places of variables, and of the variables that they use.
fn origins(known: &[(&String, &Variable)]) -> Vec<(String, Span)> {
    let mut via: Vec<(String, Span)> = Vec::new();
    for (name, variable) in known {
        let below = variable.node.iter().flat_map(|node| node.via.iter().cloned());
        for one in std::iter::once(((*name).clone(), variable.place.clone())).chain(below) {
            if via.len() < MOST_ORIGINS && !via.contains(&one) {
                via.push(one);
            }
        }
    }
    via
}

fn moved(mistakes: Vec<Mistake>, by: usize) -> Vec<Mistake> {
    mistakes.into_iter().map(|mistake| mistake.moved(by)).collect()
}

/// Returns an error if an expression may multiply a text. `'x' * 1000000000` would fill the memory before any
/// limit applies, so only numbers can be multiplied. This is checked before the expression is compiled, because
/// compilation evaluates constant parts.
fn multiplied_text(expression: &str) -> Option<Mistake> {
    let outside = without_texts(expression);
    let at = outside.find('*')?;
    let word =
        |rest: &str| rest.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned();
    let numbers = |filter: &str| matches!(filter, "abs" | "int" | "float" | "round" | "length");
    let odd_filter = outside.split('|').skip(1).any(|rest| !numbers(&word(rest)));
    let makes_text = outside != expression || outside.contains(['~', '[', '{', ',']) || odd_filter;
    makes_text.then(|| numbers_only(at))
}

/// Returns an error if an expression with `*` uses a variable that is not a number.
fn multiplied_variable(
    expression: &str,
    compiled: &Expression<'_, '_>,
    known: &[(&String, &Variable)],
) -> Option<Mistake> {
    let at = expression.find('*')?;
    let is_number = |name: &String| {
        let mut steps = name.split('.');
        let first = steps.next()?;
        let variable = known.iter().find(|(known, _)| known.as_str() == first)?.1;
        let node = steps.try_fold(variable.node.as_ref()?, |node, step| node.get(step))?;
        matches!(node.value, Value::Int(_) | Value::Float(_) | Value::Bool(_)).then_some(())
    };
    compiled.undeclared_variables(true).iter().any(|name| is_number(name).is_none()).then(|| numbers_only(at))
}

fn numbers_only(at: usize) -> Mistake {
    let message = "`*` multiplies numbers; an expression with `*` cannot contain texts or lists";
    Mistake::new(at..at + 1, message, "write text outside the braces: \"{{ n * 2 }}s\"")
}

/// Converts an error of the engine to a message for users.
fn mistake_of(error: &Error, expression: &str) -> Mistake {
    let at = error.range().filter(|range| range.start < range.end && range.end <= expression.len());
    let at = at.filter(|range| expression.is_char_boundary(range.start) && expression.is_char_boundary(range.end));
    let detail = error.detail().unwrap_or("it cannot be computed").to_owned();
    let formula = "an expression is like n * 2, a ~ 's' or a if b else c";
    let (message, remedy) = match error.kind() {
        ErrorKind::SyntaxError if has_bare_time(expression) => {
            let remedy = "a string in an expression needs quotes: {{ '10s' if a else '60s' }}";
            (format!("this is not an expression: {detail}"), remedy.to_owned())
        }
        ErrorKind::SyntaxError => (format!("this is not an expression: {detail}"), formula.to_owned()),
        ErrorKind::InvalidOperation if detail.ends_with(" / 0") => {
            (format!("the expression cannot be computed: {detail}"), "do not divide by 0".to_owned())
        }
        ErrorKind::UndefinedError => {
            ("the expression uses a field that its variable does not have".to_owned(), "check `vars`".to_owned())
        }
        ErrorKind::UnknownFilter => {
            let filters = suggest::choices(FILTERS).replace(" or ", " and ");
            (detail, format!("the available filters are {filters}"))
        }
        ErrorKind::OutOfFuel => ("the expression takes too many steps".to_owned(), "make it shorter".to_owned()),
        _ if expression.contains(['/', '%']) => {
            let remedy = format!("check for a division by zero; {formula}");
            (format!("the expression cannot be computed: {detail}"), remedy)
        }
        _ => (format!("the expression cannot be computed: {detail}"), formula.to_owned()),
    };
    Mistake::new(at.unwrap_or(0..expression.len()), message, remedy)
}

/// Whether an expression contains a value such as `10s` outside of quotes.
fn has_bare_time(expression: &str) -> bool {
    let outside = without_texts(expression);
    let mut words = outside.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(|c: char| c.is_alphabetic()))
}

fn mistake_of_value(error: NoValue, expression: &str) -> Mistake {
    let (message, remedy) = match error {
        NoValue::Nothing => (
            "the expression has no value",
            "make it return a value in every case: {{ a if b else c }}; none as the result omits the key",
        ),
        NoValue::NoNumber => ("the result of the expression is not a finite number", "check for a division by zero"),
        NoValue::TooMuch => ("the plan's templates produce too much data", "use shorter texts and lists"),
        NoValue::Other => ("the result is not a value of a plan", "return a number, a string, true, false or a list"),
    };
    let code = if error == NoValue::TooMuch { Code::TooLarge } else { Code::Template };
    Mistake { code, ..Mistake::new(0..expression.len(), message, remedy) }
}
