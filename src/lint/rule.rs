//! What a rule is, and the one table of them. What each says of itself is its page, `docs/codes/M….md`.

use crate::plan::{LintCode, Severity};

use super::finding::Finding;
use super::rules;
use super::view::View;

/// One rule.
pub struct Rule {
    /// Its stable code.
    pub code: LintCode,
    /// Its name.
    pub name: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// Looks at a plan.
    pub(super) check: fn(&View) -> Vec<Finding>,
    /// Looks for what is worth a note only, whatever the rule weighs.
    pub(super) notes: fn(&View) -> Vec<Finding>,
}

const fn warning(code: LintCode, name: &'static str, check: fn(&View) -> Vec<Finding>) -> Rule {
    Rule { code, name, severity: Severity::Warning, check, notes: rules::nothing }
}

const fn note(code: LintCode, name: &'static str, check: fn(&View) -> Vec<Finding>) -> Rule {
    Rule { code, name, severity: Severity::Note, check, notes: rules::nothing }
}

impl Rule {
    /// The same rule, with what it says as a note.
    const fn noting(self, notes: fn(&View) -> Vec<Finding>) -> Rule {
        Rule { notes, ..self }
    }
}

/// Every rule, by code.
pub(crate) static RULES: [Rule; LintCode::ALL.len()] = [
    warning(LintCode::WarmUp, "short-warm-up", rules::phases::warm_up),
    warning(LintCode::ClosedLoopOnly, "closed-loop-only", rules::load::closed_loop_only),
    warning(LintCode::OneLoad, "one-load", rules::load::one_load),
    note(LintCode::OneLength, "one-length", rules::load::one_length),
    warning(LintCode::FewRequests, "few-requests", rules::samples::few_requests),
    warning(LintCode::ShortWindow, "short-window", rules::phases::short_window),
    warning(LintCode::NoRepeats, "no-repeats", rules::compare::no_repeats),
    warning(LintCode::SeveralVariables, "several-variables", rules::compare::several_variables),
    note(LintCode::MixedCache, "mixed-cache", rules::cache::mixed_cache),
    warning(LintCode::SamePrompts, "same-prompts", rules::cache::same_prompts),
    warning(LintCode::HardwareUndisclosed, "hardware-undisclosed", rules::disclosure::hardware)
        .noting(rules::disclosure::unknown_hardware),
    warning(LintCode::ServerUndisclosed, "server-undisclosed", rules::disclosure::server)
        .noting(rules::disclosure::unknown_server),
    warning(LintCode::PrecisionUndisclosed, "precision-undisclosed", rules::disclosure::precision)
        .noting(rules::disclosure::unknown_precision),
    warning(LintCode::UnequalTuning, "unequal-tuning", rules::equal::unequal_tuning),
    warning(LintCode::UnequalAccelerators, "unequal-accelerators", rules::equal::unequal_accelerators),
    warning(LintCode::VerboseLogs, "verbose-logs", rules::host::verbose_logs),
    warning(LintCode::OneHost, "one-host", rules::host::one_host),
    warning(LintCode::BeyondCalibration, "beyond-calibration", rules::host::beyond_calibration),
    warning(LintCode::UndecidableSlo, "undecidable-slo", rules::samples::undecidable_slo),
    warning(LintCode::TotalTokens, "total-tokens", rules::load::total_tokens),
    // Found while the plan's allowances are applied, not before.
    note(LintCode::IdleAllow, "idle-allow", rules::nothing),
    warning(LintCode::NeverUsed, "never-used", rules::used::scenarios).noting(rules::used::endpoints_and_models),
    warning(LintCode::EstimatedLengths, "estimated-lengths", rules::lengths::estimated_lengths),
    note(LintCode::UnshownQueue, "unshown-queue", rules::ladder::unshown_queue),
    warning(LintCode::NarrowMargin, "narrow-margin", rules::compare::narrow_margin),
];

/// The rule of a code.
pub fn of(code: LintCode) -> &'static Rule {
    // The table holds every code once, in order; a test says so.
    &RULES[code as usize]
}
