//! The type of a rule, and the table of all rules. The page `docs/codes/M….md` documents each rule.

use Check::{Endpoint as EachEndpoint, Nothing, Plan, Sweep as EachSweep};

use crate::plan::{Endpoint, LintCode, Severity};

use super::finding::Finding;
use super::rules;
use super::threat::Threat::{self, Comparison, Disclosure, Tail, Verdict};
use super::view::{SweepView, View};

/// The subject that a rule inspects, and the function that inspects it.
pub(super) enum Check {
    /// The plan as a whole.
    Plan(fn(&View) -> Vec<Finding>),
    /// Each sweep.
    Sweep(fn(&View, &SweepView) -> Option<Finding>),
    /// Each endpoint that a sweep measures and that is not a mock, with its name.
    Endpoint(fn(&str, &Endpoint) -> Option<Finding>),
    /// No subject: the rule has no such check, or its findings arise elsewhere.
    Nothing,
}

impl Check {
    /// Runs the rule and returns its findings.
    pub(super) fn findings(&self, view: &View) -> Vec<Finding> {
        match self {
            Check::Plan(check) => check(view),
            Check::Sweep(check) => view.sweeps.iter().filter_map(|sweep| check(view, sweep)).collect(),
            Check::Endpoint(check) => {
                view.real_endpoints().into_iter().filter_map(|(name, endpoint)| check(name, endpoint)).collect()
            }
            Check::Nothing => Vec::new(),
        }
    }
}

/// A lint rule.
pub struct Rule {
    /// Stable code of the rule.
    pub code: LintCode,
    /// Name of the rule.
    pub name: &'static str,
    /// The aspect of the results that a finding puts in doubt.
    pub(crate) threatens: Threat,
    /// The severity of the rule's findings.
    pub severity: Severity,
    /// The function that checks a plan.
    pub(super) check: Check,
    /// A second check, whose findings are always notes, regardless of the severity of the rule.
    pub(super) notes: Check,
}

const fn warning(threatens: Threat, code: LintCode, name: &'static str, check: Check) -> Rule {
    Rule { code, name, threatens, severity: Severity::Warning, check, notes: Check::Nothing }
}

const fn note(threatens: Threat, code: LintCode, name: &'static str, check: Check) -> Rule {
    Rule { code, name, threatens, severity: Severity::Note, check, notes: Check::Nothing }
}

impl Rule {
    /// Returns the same rule with a second check for notes.
    const fn noting(self, notes: Check) -> Rule {
        Rule { notes, ..self }
    }
}

/// Every rule, by code.
pub(crate) static RULES: [Rule; LintCode::ALL.len()] = [
    warning(Verdict, LintCode::WarmUp, "short-warm-up", EachSweep(rules::phases::warm_up)),
    warning(Verdict, LintCode::ClosedLoopOnly, "closed-loop-only", Plan(rules::load::closed_loop_only)),
    warning(Tail, LintCode::OneLoad, "one-load", Plan(rules::load::one_load)),
    note(Tail, LintCode::OneLength, "one-length", Plan(rules::load::one_length)),
    warning(Tail, LintCode::FewRequests, "few-requests", EachSweep(rules::samples::few_requests)),
    warning(Verdict, LintCode::ShortWindow, "short-window", EachSweep(rules::phases::short_window)),
    warning(Comparison, LintCode::NoRepeats, "no-repeats", EachSweep(rules::compare::no_repeats)),
    warning(Comparison, LintCode::SeveralVariables, "several-variables", EachSweep(rules::compare::several_variables)),
    note(Comparison, LintCode::MixedCache, "mixed-cache", EachSweep(rules::cache::mixed_cache)),
    warning(Verdict, LintCode::SamePrompts, "same-prompts", EachSweep(rules::cache::same_prompts)),
    warning(
        Disclosure,
        LintCode::HardwareUndisclosed,
        "hardware-undisclosed",
        EachEndpoint(rules::disclosure::hardware),
    )
    .noting(EachEndpoint(rules::disclosure::unknown_hardware)),
    warning(Disclosure, LintCode::ServerUndisclosed, "server-undisclosed", EachEndpoint(rules::disclosure::server))
        .noting(EachEndpoint(rules::disclosure::unknown_server)),
    warning(Disclosure, LintCode::PrecisionUndisclosed, "precision-undisclosed", Plan(rules::disclosure::precision))
        .noting(Plan(rules::disclosure::unknown_precision)),
    warning(Comparison, LintCode::UnequalTuning, "unequal-tuning", EachSweep(rules::equal::unequal_tuning)),
    warning(
        Comparison,
        LintCode::UnequalAccelerators,
        "unequal-accelerators",
        EachSweep(rules::equal::unequal_accelerators),
    ),
    warning(Verdict, LintCode::VerboseLogs, "verbose-logs", EachEndpoint(rules::host::verbose_logs)),
    warning(Verdict, LintCode::OneHost, "one-host", EachEndpoint(rules::host::one_host)),
    warning(Verdict, LintCode::BeyondCalibration, "beyond-calibration", EachSweep(rules::host::beyond_calibration)),
    warning(Verdict, LintCode::UndecidableSlo, "undecidable-slo", EachSweep(rules::samples::undecidable_slo)),
    warning(Comparison, LintCode::TotalTokens, "total-tokens", Plan(rules::load::total_tokens)),
    // These findings arise while the plan's `allow` entries are applied.
    note(Disclosure, LintCode::IdleAllow, "idle-allow", Nothing),
    warning(Disclosure, LintCode::NeverUsed, "never-used", Plan(rules::used::scenarios))
        .noting(Plan(rules::used::endpoints_and_models)),
    warning(Verdict, LintCode::EstimatedLengths, "estimated-lengths", Plan(rules::lengths::estimated_lengths)),
    note(Tail, LintCode::UnshownQueue, "unshown-queue", EachSweep(rules::ladder::unshown_queue)),
    warning(Comparison, LintCode::NarrowMargin, "narrow-margin", EachSweep(rules::compare::narrow_margin)),
    warning(Comparison, LintCode::FixedGpus, "fixed-gpus", Plan(rules::spread::fixed_accelerators)),
    warning(Verdict, LintCode::ShortConfirm, "short-confirm", EachSweep(rules::search::short_confirm)),
    note(Verdict, LintCode::FineResolution, "fine-resolution", EachSweep(rules::search::fine_resolution)),
    warning(Verdict, LintCode::NoHeadroom, "no-headroom", Plan(rules::search::no_headroom)),
    note(Verdict, LintCode::UnreachableUntil, "unreachable-until", EachSweep(rules::repeats::unreachable_until)),
    note(Disclosure, LintCode::NothingOptional, "nothing-optional", Plan(rules::budget::nothing_optional)),
    warning(Verdict, LintCode::UndecidableGate, "undecidable-gate", EachSweep(rules::samples::undecidable_gate)),
    warning(Verdict, LintCode::ForeignMetrics, "foreign-metrics", EachEndpoint(rules::host::foreign_metrics)),
    note(Comparison, LintCode::ManyStarts, "many-starts", Plan(rules::starts::many_starts)),
    warning(Verdict, LintCode::TextFlag, "text-flag", Plan(rules::flags::text_flags)),
];

/// Returns the rule of a code.
pub fn of(code: LintCode) -> &'static Rule {
    // The table contains every code once and in order; a test checks this.
    &RULES[code as usize]
}
