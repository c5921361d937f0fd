//! What a rule is, and the one table of them.

use crate::plan::{LintCode, Severity};

use super::finding::Finding;
use super::rules;
use super::table::{self, LintText};
use super::view::View;

/// One rule.
pub struct Rule {
    /// Its stable code.
    pub code: LintCode,
    /// Its name.
    pub name: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What it says of itself.
    pub words: LintText,
    /// Looks at a plan.
    pub(super) check: fn(&View) -> Vec<Finding>,
    /// Looks for what is worth a note only, whatever the rule weighs.
    pub(super) notes: fn(&View) -> Vec<Finding>,
}

const fn warning(code: LintCode, name: &'static str, words: LintText, check: fn(&View) -> Vec<Finding>) -> Rule {
    Rule { code, name, severity: Severity::Warning, words, check, notes: rules::nothing }
}

const fn note(code: LintCode, name: &'static str, words: LintText, check: fn(&View) -> Vec<Finding>) -> Rule {
    Rule { code, name, severity: Severity::Note, words, check, notes: rules::nothing }
}

impl Rule {
    /// The same rule, with what it says as a note.
    const fn noting(self, notes: fn(&View) -> Vec<Finding>) -> Rule {
        Rule { notes, ..self }
    }
}

/// Every rule, by code.
pub(crate) static RULES: [Rule; LintCode::ALL.len()] = [
    warning(LintCode::WarmUp, "short-warm-up", table::WARM_UP, rules::phases::warm_up),
    warning(LintCode::ClosedLoopOnly, "closed-loop-only", table::CLOSED_LOOP_ONLY, rules::load::closed_loop_only),
    warning(LintCode::OneLoad, "one-load", table::ONE_LOAD, rules::load::one_load),
    note(LintCode::OneLength, "one-length", table::ONE_LENGTH, rules::load::one_length),
    warning(LintCode::FewRequests, "few-requests", table::FEW_REQUESTS, rules::samples::few_requests),
    warning(LintCode::ShortWindow, "short-window", table::SHORT_WINDOW, rules::phases::short_window),
    warning(LintCode::NoRepeats, "no-repeats", table::NO_REPEATS, rules::compare::no_repeats),
    warning(
        LintCode::SeveralVariables,
        "several-variables",
        table::SEVERAL_VARIABLES,
        rules::compare::several_variables,
    ),
    note(LintCode::MixedCache, "mixed-cache", table::MIXED_CACHE, rules::cache::mixed_cache),
    warning(LintCode::SamePrompts, "same-prompts", table::SAME_PROMPTS, rules::cache::same_prompts),
    warning(LintCode::HardwareUndisclosed, "hardware-undisclosed", table::HARDWARE, rules::disclosure::hardware)
        .noting(rules::disclosure::unknown_hardware),
    warning(LintCode::ServerUndisclosed, "server-undisclosed", table::SERVER, rules::disclosure::server)
        .noting(rules::disclosure::unknown_server),
    warning(LintCode::PrecisionUndisclosed, "precision-undisclosed", table::PRECISION, rules::disclosure::precision)
        .noting(rules::disclosure::unknown_precision),
    warning(LintCode::UnequalTuning, "unequal-tuning", table::UNEQUAL_TUNING, rules::equal::unequal_tuning),
    warning(
        LintCode::UnequalAccelerators,
        "unequal-accelerators",
        table::UNEQUAL_ACCELERATORS,
        rules::equal::unequal_accelerators,
    ),
    warning(LintCode::VerboseLogs, "verbose-logs", table::VERBOSE_LOGS, rules::host::verbose_logs),
    warning(LintCode::OneHost, "one-host", table::ONE_HOST, rules::host::one_host),
    warning(
        LintCode::BeyondCalibration,
        "beyond-calibration",
        table::BEYOND_CALIBRATION,
        rules::host::beyond_calibration,
    ),
    warning(LintCode::UndecidableSlo, "undecidable-slo", table::UNDECIDABLE_SLO, rules::samples::undecidable_slo),
    warning(LintCode::TotalTokens, "total-tokens", table::TOTAL_TOKENS, rules::load::total_tokens),
    // Found while the plan's allowances are applied, not before.
    note(LintCode::IdleAllow, "idle-allow", table::IDLE_ALLOW, rules::nothing),
    warning(LintCode::NeverUsed, "never-used", table::NEVER_USED, rules::used::scenarios)
        .noting(rules::used::endpoints_and_models),
    warning(
        LintCode::EstimatedLengths,
        "estimated-lengths",
        table::ESTIMATED_LENGTHS,
        rules::lengths::estimated_lengths,
    ),
    note(LintCode::UnshownQueue, "unshown-queue", table::UNSHOWN_QUEUE, rules::ladder::unshown_queue),
    warning(LintCode::NarrowMargin, "narrow-margin", table::NARROW_MARGIN, rules::compare::narrow_margin),
    warning(LintCode::FixedGpus, "fixed-gpus", table::FIXED_GPUS, rules::spread::fixed_accelerators),
];

/// The rule of a code.
pub fn of(code: LintCode) -> &'static Rule {
    // The table holds every code once, in order; a test says so.
    &RULES[code as usize]
}
