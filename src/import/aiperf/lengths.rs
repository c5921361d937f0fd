//! Converts the lengths of AIPerf's synthetic prompts and responses (`src/aiperf/config/distributions.py`) to
//! `prompt_tokens`, `output_tokens` or `lengths`.

use super::leaves::At;
use crate::import::said::Said;

/// A scenario's maximum length, in tokens.
const LONGEST: f64 = 4_000_000.0;
/// Distance between the center and the bounds of a distribution whose source sets no bounds, in standard
/// deviations.
const REACH: f64 = 6.0;
/// Number of ranges with equal shares that approximate one peak.
const RANGES: u32 = 16;
/// The 99 % quantile of the standard normal distribution.
const Z99: f64 = 2.326_347_874;

/// The lengths of prompts or of responses.
#[derive(Debug, Clone)]
pub(super) struct Length {
    /// The value for the plan's `lengths`; a number if the length is fixed.
    pub value: String,
    /// Whether the length is a single number.
    pub is_fixed: bool,
    pub origin: String,
}

impl Length {
    /// Creates a fixed length of at least `least` tokens.
    pub(super) fn fixed(tokens: f64, least: u32, origin: String) -> Length {
        let tokens = tokens.ceil().clamp(f64::from(least), LONGEST);
        Length { value: format!("{tokens}"), is_fixed: true, origin }
    }

    fn varied(value: String, origin: String) -> Length {
        Length { value, is_fixed: false, origin }
    }

    /// Adds tokens to a fixed length; `None` if the length varies.
    pub(super) fn plus(self, more: &Said<u64>) -> Option<Length> {
        let tokens: f64 = self.value.parse().ok().filter(|_| self.is_fixed)?;
        Some(Length::fixed(tokens + more.value as f64, 1, format!("{} and {}", self.origin, more.origin)))
    }
}

/// Returns the length at this place; `None` if there is no readable length.
pub(super) fn length(at: At, least: u32) -> Option<Length> {
    if !at.is_map() {
        let said = at.float()?;
        told_bounds(at, said.value, least);
        return Some(Length::fixed(said.value, least, said.origin));
    }
    at.get("type").needless("its other fields determine the distribution");
    let bounds = Bounds::of(at, least);
    if at.get("peaks").is_there() {
        return peaks(at, bounds);
    }
    if at.get("points").is_there() {
        return points(at, least);
    }
    let mean = at.first(&["mean", "value"]).float();
    if let Some(median) = at.first(&["median", "p50"]).float().filter(|said| said.value > 0.0) {
        return Some(lognormal(at, mean, median, bounds));
    }
    let mean = mean?;
    told_bounds(at.first(&["mean", "value"]), mean.value, least);
    let sd = at.first(&["stddev", "std_dev"]).float();
    if sd.as_ref().is_some_and(|sd| sd.value == 0.0) {
        at.first(&["stddev", "std_dev"]).needless("it is 0: the length is fixed");
    }
    match sd.filter(|sd| sd.value > 0.0) {
        None => Some(Length::fixed(mean.value, least, mean.origin)),
        Some(sd) => {
            let origin = format!("{}, {}", mean.origin, sd.origin);
            Some(normal(mean.value, sd.value, bounds, origin))
        }
    }
}

fn told_bounds(at: At, tokens: f64, least: u32) {
    if tokens < f64::from(least) || tokens > LONGEST {
        at.differs(&format!("a length must be from {least} to {LONGEST} tokens: the plan uses the nearest"));
    }
}

/// The bounds of a length, in tokens. `low` and `high` are `None` if the source does not set them.
#[derive(Clone, Copy)]
struct Bounds {
    least: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl Bounds {
    fn of(at: At, least: u32) -> Bounds {
        let bound = |key: &str| {
            let said = at.get(key).float()?;
            at.get(key).differs("AIPerf clamps values beyond a bound to the bound; here, such values never occur");
            Some(said.value)
        };
        Bounds { least: f64::from(least), low: bound("min"), high: bound("max") }
    }

    /// Returns the lower and the upper bound in whole tokens, widened to include `middle`. `low` and `high`
    /// replace bounds that are not set.
    fn around(self, low: f64, middle: f64, high: f64) -> (f64, f64) {
        let low = self.low.unwrap_or(low).floor().clamp(self.least, LONGEST);
        let high = self.high.unwrap_or(high).ceil().clamp(self.least, LONGEST);
        (low.min(middle.floor()).max(self.least), high.max(middle.ceil()).max(low))
    }
}

fn normal(mean: f64, sd: f64, bounds: Bounds, origin: String) -> Length {
    let (mean, sd) = (mean.clamp(bounds.least, LONGEST), sd.clamp(0.001, LONGEST));
    let (min, max) = bounds.around(mean - REACH * sd, mean, mean + REACH * sd);
    if max <= min {
        return Length::fixed(mean, 1, origin);
    }
    let value = format!("{{ normal: {{ mean: {}, sd: {}, min: {min}, max: {max} }} }}", short(mean), short(sd));
    Length::varied(value, origin)
}

fn lognormal(at: At, mean: Option<Said<f64>>, median: Said<f64>, bounds: Bounds) -> Length {
    let p99 = at.get("p99").float();
    let sigma = match (&mean, &p99) {
        (_, Some(p99)) => (p99.value / median.value).ln() / Z99,
        (Some(mean), None) => (2.0 * (mean.value / median.value).ln()).max(0.0).sqrt(),
        (None, None) => 0.0,
    };
    if let (Some(_), Some(_)) = (&mean, &p99) {
        at.get("mean").missing("a lognormal distribution takes only its median and p99; its mean follows from them");
    }
    let origins = [mean.map(|said| said.origin), Some(median.origin), p99.map(|said| said.origin)];
    let origin = origins.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let middle = median.value.clamp(bounds.least, LONGEST);
    if !(sigma.is_finite() && sigma > 0.001) {
        return Length::fixed(middle, 1, origin);
    }
    let sigma = sigma.min(5.0);
    let (min, max) = bounds.around(1.0, middle, middle * (REACH * sigma).exp());
    if max <= min {
        return Length::fixed(middle, 1, origin);
    }
    let (middle, sigma) = (short(middle), short(sigma));
    Length::varied(format!("{{ lognormal: {{ median: {middle}, sigma: {sigma}, min: {min}, max: {max} }} }}"), origin)
}

/// Converts weighted values to a histogram.
fn points(at: At, least: u32) -> Option<Length> {
    let mut rows = Vec::new();
    for point in at.get("points").each() {
        let value = point.get("value").float()?.value.ceil().clamp(f64::from(least), LONGEST);
        let weight = point.get("weight").float().map_or(1.0, |said| said.value.min(1e9));
        if weight >= 0.001 {
            rows.push(format!("{{ min: {value}, max: {value}, weight: {} }}", short(weight)));
        }
    }
    table(rows, at)
}

/// Converts weighted peaks to a histogram; each peak becomes ranges with equal shares.
fn peaks(at: At, bounds: Bounds) -> Option<Length> {
    let mut rows = Vec::new();
    for peak in at.get("peaks").each() {
        let mean = peak.get("mean").float()?.value;
        let weight = peak.get("weight").float().map_or(1.0, |said| said.value.min(1e9)) / f64::from(RANGES);
        let (sd, median) = (peak.get("stddev").float(), peak.get("median").float());
        let at_share = |share: f64| match (&sd, &median) {
            (_, Some(median)) if median.value > 0.0 && mean > median.value => {
                median.value * ((2.0 * (mean / median.value).ln()).sqrt() * quantile(share)).exp()
            }
            (Some(sd), _) => mean + sd.value * quantile(share),
            _ => mean,
        };
        let bound = |share: f64| at_share(share.clamp(0.001, 0.999)).round().clamp(bounds.least, LONGEST);
        for number in 0..RANGES {
            let [low, high] = [number, number + 1].map(|edge| bound(f64::from(edge) / f64::from(RANGES)));
            if weight >= 0.001 {
                rows.push(format!("{{ min: {low}, max: {}, weight: {} }}", high.max(low), short(weight)));
            }
        }
    }
    at.get("peaks")
        .differs(&format!("each peak becomes {RANGES} ranges of equal share, from its 0.1 % to its 99.9 % quantile"));
    table(rows, at)
}

fn table(rows: Vec<String>, at: At) -> Option<Length> {
    if rows.is_empty() || rows.len() > 1000 {
        at.missing("no usable length; write `lengths` of the scenario");
        return None;
    }
    let origin = at.json().map(|said| said.origin).unwrap_or_default();
    Some(Length::varied(format!("{{ histogram: [{}] }}", rows.join(", ")), origin))
}

/// Returns the quantile of the standard normal distribution, to within 0.0005 (Abramowitz and
/// Stegun, 26.2.23).
fn quantile(share: f64) -> f64 {
    let tail = share.min(1.0 - share).max(1e-9);
    let t = (-2.0 * tail.ln()).sqrt();
    let over = (0.010_328 * t + 0.802_853) * t + 2.515_517;
    let under = ((0.001_308 * t + 0.189_269) * t + 1.432_788) * t + 1.0;
    let far = t - over / under;
    if share < 0.5 { -far } else { far }
}

/// Formats a number with at most four decimals.
pub(super) fn short(value: f64) -> String {
    let rounded = (value * 10_000.0).round() / 10_000.0;
    format!("{rounded}")
}
