//! What can be wrong with a plan that its checker let through: named, with the sweep and the cell it happened in.

use crate::plan::matrix::axes::GridError;
use crate::plan::model::task::Misfit;
use crate::plan::template::cell::CellMistake;
use crate::plan::{Api, Engine, NonceMode, Scalar};
use crate::units::Nanos;

use super::Cell;

/// A plan that cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sweep `{sweep}`{cell}: {mistake}")]
pub struct ExpandError {
    /// Name of the sweep.
    pub sweep: String,
    /// The cell as `, cell { axis: value, … }`; empty where it is a mistake of the sweep.
    pub cell: String,
    /// What is wrong with it.
    pub mistake: Mistake,
}

impl ExpandError {
    /// `mistake`, made in `cell` of the sweep called `sweep`.
    pub fn new(sweep: &str, cell: &Cell, mistake: Mistake) -> ExpandError {
        let cell = cell.iter().map(|(axis, value)| format!("{axis}: {value}")).collect::<Vec<_>>().join(", ");
        ExpandError { sweep: sweep.to_owned(), cell: format!(", cell {{ {cell} }}"), mistake }
    }

    /// `mistake` of the sweep called `sweep` as a whole.
    pub fn of_sweep(sweep: &str, mistake: Mistake) -> ExpandError {
        ExpandError { sweep: sweep.to_owned(), cell: String::new(), mistake }
    }
}

/// What is wrong with a cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// Axes that make no matrix.
    #[error("{0}")]
    Matrix(GridError),
    /// `extend` gives an axis that the cell has already.
    #[error("`extend` gives `{0}`, which this cell has already: exclude the cell, or narrow the `when`")]
    Overrides(String),
    /// `add` makes a cell that is there already.
    #[error("`add` makes this cell a second time: remove it from `add`")]
    CellTwice,
    /// A run that two sweeps hold, with generators built differently.
    #[error(
        "sweep `{first}` holds the same run with another `engine`: it is run once, and how the generator is built is no \
         part of what a run is; give both sweeps the same `engine`, or leave the cell out of one"
    )]
    OtherEngine {
        /// The sweep that holds it first.
        first: String,
    },
    /// A flag of a server that nobody starts with it.
    #[error(
        "`{axis}` sets a flag of the server, and endpoint `{endpoint}` has no `launch`, so nothing starts it with that flag: add \
         `launch`, or keep the axis to other endpoints by `when`"
    )]
    NoLaunch {
        /// The axis.
        axis: Box<str>,
        /// The endpoint.
        endpoint: Box<str>,
    },
    /// Something that the cell cannot fill.
    #[error("`{field}` of endpoint `{endpoint}`: {mistake}")]
    OfCell {
        /// The endpoint.
        endpoint: Box<str>,
        /// The field.
        field: Box<str>,
        /// Why.
        mistake: Box<CellMistake>,
    },
    /// An axis that every cell needs is not there.
    #[error("there is no `{0}`: add it to the matrix")]
    MissingAxis(&'static str),
    /// An axis that means nothing.
    #[error(
        "`{0}` is no axis: name endpoint, model, scenario, batch_size, qps, arrivals, server.FLAG or a field of a scenario"
    )]
    UnknownAxis(String),
    /// A name that the plan does not define.
    #[error("no {axis} is called `{name}`: define it in the plan or use a name that is")]
    UnknownName {
        /// The axis that names it.
        axis: &'static str,
        /// The name.
        name: String,
    },
    /// A value that its axis cannot take.
    #[error("`{axis}: {value}` does not fit: write {expected}")]
    WrongType {
        /// The axis.
        axis: String,
        /// The value.
        value: Scalar,
        /// What fits.
        expected: &'static str,
    },
    /// No model id for an engine.
    #[error("model `{model}` has no id for {}: add `{}` or `default` to its `id`", engine.name(), engine.name())]
    NoModelId {
        /// The plan's name of the model.
        model: String,
        /// The endpoint's engine.
        engine: Engine,
    },
    /// Neither a batch size nor a rate.
    #[error("there is no load: add `batch_size`, `qps` or both to the matrix")]
    NoLoad,
    /// A rate on an axis, and a profile that brings its own.
    #[error("the profile of `arrivals` is in requests per second, and the matrix has a `qps` too: keep one")]
    TwoRates,
    /// Two server facts with one flattened name.
    #[error("the server fact `{0}` is given twice: once as a dotted key, once in a table")]
    SameFact(String),
    /// Cold prompts that do not each open with a nonce.
    #[error(
        "`cache: cold` needs `nonce: on`, and this cell has `nonce: {}`: a cold prompt opens with a nonce of its own",
        .0.name()
    )]
    ColdWithoutNonce(NonceMode),
    /// A scenario that the endpoint's protocol cannot carry.
    #[error("scenario `{scenario}` {}, and endpoint `{endpoint}` has `api: {}`: {}", misfit.what, api.name(), misfit.remedy)]
    OtherProtocol {
        /// The scenario.
        scenario: Box<str>,
        /// The endpoint.
        endpoint: Box<str>,
        /// Its protocol.
        api: Api,
        /// What the scenario asks for.
        misfit: Box<Misfit>,
    },
    /// A context that holds no first turn.
    #[error(
        "`context_limit: {limit}` is shorter than the first turn: {needs} tokens, the output asked for counted; write \
         {needs} or more, or shorten prompt_tokens, output_tokens or system_tokens"
    )]
    ContextTooShort {
        /// The limit.
        limit: u32,
        /// Tokens of a first turn and its output.
        needs: u64,
    },
    /// A budget that is over before every setting has had a run.
    #[error(
        "`optimize.budget: {budget}` is less than one run of each of the {settings} settings takes, {}: write more, beside the time \
         that their servers take to start, or fewer settings",
        .needs.spoken()
    )]
    SmallBudget {
        /// The budget.
        budget: Nanos,
        /// How many settings there are.
        settings: usize,
        /// What one run of each takes.
        needs: Nanos,
    },
    /// A fill that no duration can hold.
    #[error("`fill.per_second` must be above 0 and fill {slots} slots within five centuries")]
    FillTooLong {
        /// Slots to fill.
        slots: u32,
    },
}
