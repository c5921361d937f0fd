//! The codes of the methodology lint, and how a plan says that one of its rules does not hold for it. The rules
//! themselves are in `lint`; the codes are here because a plan names them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of the methodology lint that does not hold for this plan or sweep, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    /// The rule, like M004. `sweepline check PLAN` shows codes, `docs/LINT.md` lists them all.
    pub code: LintCode,
    /// Why the rule does not hold here, for those who read the plan or its results.
    #[schemars(example = &"the window is short on purpose: this is a smoke test")]
    pub because: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal,)*) => {
        /// A rule of the methodology lint. The number is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum LintCode {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl LintCode {
            /// All of them, by number.
            pub const ALL: [LintCode; [$($code),*].len()] = [$(LintCode::$variant),*];

            /// As it is written: `M004`.
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
    /// Latency is promised, and every sweep is a closed loop.
    ClosedLoopOnly = "M002",
    /// An endpoint is measured at one load only.
    OneLoad = "M003",
    /// Every request has the same lengths.
    OneLength = "M004",
    /// Fewer requests than the percentile needs.
    FewRequests = "M005",
    /// The measure window is short.
    ShortWindow = "M006",
    /// A comparison without repeats.
    NoRepeats = "M007",
    /// Compared cells differ in several things at once.
    SeveralVariables = "M008",
    /// Cold and warm prefix caches side by side.
    MixedCache = "M009",
    /// Prompts come again where none are meant to.
    SamePrompts = "M010",
    /// The hardware is not disclosed.
    HardwareUndisclosed = "M011",
    /// The server is not disclosed.
    ServerUndisclosed = "M012",
    /// The precision of the weights is not disclosed.
    PrecisionUndisclosed = "M013",
    /// Endpoints side by side, one tuned and the other not.
    UnequalTuning = "M014",
    /// Endpoints side by side with different numbers of accelerators.
    UnequalAccelerators = "M015",
    /// The server logs every request.
    VerboseLogs = "M016",
    /// Client and server on one host.
    OneHost = "M017",
    /// A load beyond what `calibrate` showed on this host.
    BeyondCalibration = "M018",
    /// A service level objective that cannot be decided.
    UndecidableSlo = "M019",
    /// Prompt and output tokens added up as capacity.
    TotalTokens = "M020",
    /// An `allow` that allows nothing.
    IdleAllow = "M021",
    /// A scenario, endpoint or model that no sweep uses.
    NeverUsed = "M022",
    /// Lengths in tokens by an estimate.
    EstimatedLengths = "M023",
    /// A ladder of rates whose windows are too short to show whether the server keeps up.
    UnshownQueue = "M024",
    /// A margin that the repeats seldom show.
    NarrowMargin = "M025",
    /// A flag changes the number of accelerators, and the number that is declared does not follow it.
    FixedGpus = "M026",
    /// A search whose confirming run is no longer than the others.
    ShortConfirm = "M027",
    /// A search for a finer resolution than its windows can tell.
    FineResolution = "M028",
    /// A load at what an earlier sweep found, or beyond.
    NoHeadroom = "M029",
    /// Repeats that most likely end before the means are known.
    UnreachableUntil = "M030",
    /// A budget that can leave nothing out.
    NothingOptional = "M031",
    /// A gate about a percentile for which there will be too few requests.
    UndecidableGate = "M032",
    /// A page of metrics on another host than the endpoint, whose engine is not named.
    ForeignMetrics = "M033",
}

impl fmt::Display for LintCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
