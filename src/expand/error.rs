//! Errors in a plan that the check did not detect, with the affected sweep and cell.

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
    /// The cell as `, cell { axis: value, … }`; empty if the error concerns the whole sweep.
    pub cell: String,
    /// The error.
    pub mistake: Mistake,
}

impl ExpandError {
    /// Creates the error `mistake` of `cell` in the sweep called `sweep`.
    pub fn new(sweep: &str, cell: &Cell, mistake: Mistake) -> ExpandError {
        let cell = cell.iter().map(|(axis, value)| format!("{axis}: {value}")).collect::<Vec<_>>().join(", ");
        ExpandError { sweep: sweep.to_owned(), cell: format!(", cell {{ {cell} }}"), mistake }
    }

    /// Creates the error `mistake` of the sweep called `sweep` as a whole.
    pub fn of_sweep(sweep: &str, mistake: Mistake) -> ExpandError {
        ExpandError { sweep: sweep.to_owned(), cell: String::new(), mistake }
    }
}

/// An error in a cell or in a whole sweep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// A load that several processes cannot send together.
    #[error("{workers} workers cannot share this load: {why}; {remedy}, or set `engine: {{ workers: 1 }}`")]
    Undivided {
        /// Number of processes.
        workers: u32,
        /// Why the load cannot be divided.
        why: &'static str,
        /// What to change.
        remedy: &'static str,
    },
    /// Axes that do not form a matrix.
    #[error("{0}")]
    Matrix(GridError),
    /// `extend` sets an axis that the cell already has.
    #[error("`extend` sets `{0}`, which this cell already has: exclude the cell, or narrow the `when`")]
    Overrides(String),
    /// `add` creates a cell that already exists.
    #[error("`add` creates a duplicate of this cell: remove it from `add`")]
    CellTwice,
    /// A run that belongs to two sweeps with different generator settings.
    #[error(
        "sweep `{first}` contains the same run with a different `engine`, but the run is executed only once, because \
         `engine` is not part of its identity; use the same `engine` in both sweeps, or exclude the cell from one of \
         them"
    )]
    OtherEngine {
        /// The first sweep that contains the run.
        first: String,
    },
    /// A flag for a server that sweepline does not start.
    #[error(
        "`{axis}` sets a flag of the server, but endpoint `{endpoint}` has no `launch`, so the flag has no \
         effect: add `launch`, or restrict the axis to other endpoints with `when`"
    )]
    NoLaunch {
        /// Name of the axis that sets the flag.
        axis: Box<str>,
        /// Name of the endpoint without a `launch`.
        endpoint: Box<str>,
    },
    /// An expression that cannot be evaluated in the cell.
    #[error("`{field}` of endpoint `{endpoint}`: {mistake}")]
    OfCell {
        /// Name of the endpoint whose field contains the expression.
        endpoint: Box<str>,
        /// Name of the field that contains the expression.
        field: Box<str>,
        /// Why the expression cannot be evaluated.
        mistake: Box<CellMistake>,
    },
    /// An axis that every cell needs is missing.
    #[error("`{0}` is missing: add it to the matrix")]
    MissingAxis(&'static str),
    /// An unknown axis.
    #[error(
        "`{0}` is not an axis: use endpoint, model, scenario, batch_size, qps, arrivals, server.FLAG or a \
         field of a scenario"
    )]
    UnknownAxis(String),
    /// A name that the plan does not define.
    #[error("unknown {axis} `{name}`: define it in the plan, or use a name that is defined")]
    UnknownName {
        /// The axis on which the name is used.
        axis: &'static str,
        /// The unknown name.
        name: String,
    },
    /// A value that its axis does not accept.
    #[error("`{axis}: {value}` is not valid: write {expected}")]
    WrongType {
        /// Name of the axis.
        axis: String,
        /// The value that the axis does not accept.
        value: Scalar,
        /// A description of the accepted values.
        expected: &'static str,
    },
    /// There is no model id for an engine.
    #[error("model `{model}` has no id for {}: add `{}` or `default` to its `id`", engine.name(), engine.name())]
    NoModelId {
        /// The plan's name for the model.
        model: String,
        /// The endpoint's engine.
        engine: Engine,
    },
    /// Neither a batch size nor a rate is set.
    #[error("the load is missing: add `batch_size`, `qps` or both to the matrix")]
    NoLoad,
    /// A rate on an axis, combined with a profile that has its own rate.
    #[error(
        "the profile of `arrivals` is in requests per second, but the matrix also has `qps`: keep only one of them"
    )]
    TwoRates,
    /// Two server facts with the same flattened name.
    #[error("the server fact `{0}` is set twice: as a dotted key and in a table")]
    SameFact(String),
    /// Cold prompts that do not each begin with a nonce.
    #[error(
        "`cache: cold` needs `nonce: on`, but this cell has `nonce: {}`; each cold prompt must begin with its own nonce",
        .0.name()
    )]
    ColdWithoutNonce(NonceMode),
    /// A scenario that the endpoint's protocol does not support.
    #[error(
        "scenario `{scenario}` {}, but endpoint `{endpoint}` has `api: {}`: {}",
        misfit.what, api.name(), misfit.remedy
    )]
    OtherProtocol {
        /// Name of the scenario.
        scenario: Box<str>,
        /// Name of the endpoint.
        endpoint: Box<str>,
        /// The endpoint's protocol.
        api: Api,
        /// The property of the scenario that the protocol does not support.
        misfit: Box<Misfit>,
    },
    /// The context is too short for a first turn.
    #[error(
        "`context_limit: {limit}` is shorter than the first turn, which needs {needs} tokens including the \
         requested output; write {needs} or more, or shorten prompt_tokens, output_tokens or system_tokens"
    )]
    ContextTooShort {
        /// The plan's `context_limit`, in tokens.
        limit: u32,
        /// Number of tokens in a first turn, including its output.
        needs: u64,
    },
    /// The budget ends before every setting has had a run.
    #[error(
        "`optimize.budget: {budget}` is too short: one run of each of the {settings} settings takes {}, not counting \
         server starts; increase the budget to cover both, or use fewer settings",
        .needs.spoken()
    )]
    SmallBudget {
        /// The budget that the plan sets.
        budget: Nanos,
        /// Number of different settings.
        settings: usize,
        /// The total time if each setting has one run.
        needs: Nanos,
    },
    /// A fill phase that is too long to be represented as a duration.
    #[error("`fill.per_second` must be above 0 and high enough to fill {slots} slots within five centuries")]
    FillTooLong {
        /// Number of slots to fill.
        slots: u32,
    },
}
