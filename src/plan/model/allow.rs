//! The codes of the methodology lint, and the entries of a plan that disable a rule. The rules themselves
//! are in `lint`; the codes are here because plans name them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of the methodology lint that does not apply to this plan or sweep, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    /// The rule, like M004. `sweepline check PLAN` shows the codes; `docs/LINT.md` lists them all.
    pub code: LintCode,
    /// Why the rule does not apply here, for readers of the plan or its results.
    #[schemars(example = &"the window is short on purpose: this is a smoke test")]
    pub because: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal,)*) => {
        /// A rule of the methodology lint. Its number is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum LintCode {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl LintCode {
            /// All rules, by number.
            pub const ALL: [LintCode; [$($code),*].len()] = [$(LintCode::$variant),*];

            /// The name in plans: `M004`.
            pub fn name(self) -> &'static str {
                match self {
                    $(LintCode::$variant => $code,)*
                }
            }
        }
    };
}

codes! {
    /// The warm-up is missing or too short.
    WarmUp = "M001",
    /// Latency is reported, and every sweep is a closed loop.
    ClosedLoopOnly = "M002",
    /// An endpoint is measured at only one load.
    OneLoad = "M003",
    /// Every request has the same lengths.
    OneLength = "M004",
    /// Too few requests for a percentile.
    FewRequests = "M005",
    /// The measure window is short.
    ShortWindow = "M006",
    /// A comparison without repeats.
    NoRepeats = "M007",
    /// Compared cells differ in several things at once.
    SeveralVariables = "M008",
    /// Cold and warm prefix caches are compared.
    MixedCache = "M009",
    /// Prompts repeat where they should be distinct.
    SamePrompts = "M010",
    /// The hardware is not disclosed.
    HardwareUndisclosed = "M011",
    /// The server is not disclosed.
    ServerUndisclosed = "M012",
    /// The precision of the weights is not disclosed.
    PrecisionUndisclosed = "M013",
    /// A tuned endpoint is compared with one that is not tuned.
    UnequalTuning = "M014",
    /// Endpoints with different numbers of accelerators are compared.
    UnequalAccelerators = "M015",
    /// The server logs every request.
    VerboseLogs = "M016",
    /// The client and the server run on the same host.
    OneHost = "M017",
    /// A load beyond what `calibrate` measured on this host.
    BeyondCalibration = "M018",
    /// A service level objective that cannot be decided.
    UndecidableSlo = "M019",
    /// Prompt and output tokens are added up as capacity.
    TotalTokens = "M020",
    /// An `allow` without effect.
    IdleAllow = "M021",
    /// A scenario, endpoint or model that no sweep uses.
    NeverUsed = "M022",
    /// Lengths in tokens are estimated.
    EstimatedLengths = "M023",
    /// A series of rates whose windows are too short to show whether the server keeps up.
    UnshownQueue = "M024",
    /// A margin that the repeats rarely resolve.
    NarrowMargin = "M025",
    /// A flag changes the number of accelerators, but the declared number stays the same.
    FixedGpus = "M026",
    /// A search whose confirming run is no longer than the others.
    ShortConfirm = "M027",
    /// A search whose resolution is finer than its windows can show.
    FineResolution = "M028",
    /// A load at or above the result of an earlier sweep.
    NoHeadroom = "M029",
    /// Repeats that will probably end before the means are known precisely enough.
    UnreachableUntil = "M030",
    /// A budget without optional sweeps to skip.
    NothingOptional = "M031",
    /// A gate on a percentile for which there will be too few requests.
    UndecidableGate = "M032",
    /// A metrics page on a different host than its endpoint, for which no engine is set.
    ForeignMetrics = "M033",
    /// The rounds of a comparison start servers more often than necessary.
    ManyStarts = "M034",
    /// The value of a server flag is a string that looks like a switch or a number.
    TextFlag = "M035",
}

impl fmt::Display for LintCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
