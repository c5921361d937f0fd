//! The loads of a row, generated as in InferenceX's `generate_sweep_configs.py`: the loads of `conc-list`, or
//! else `conc-start`, doubled repeatedly, with `conc-end` at the end.

use crate::import::error::ImportError;
use crate::import::said::Said;
use crate::import::tree::At;

/// Maximum number of requests in flight in a plan.
const MOST_IN_FLIGHT: u32 = 100_000;
/// Maximum length of a list of loads.
const MOST: usize = 10_000;

/// Returns the loads of a row, each with its origin.
pub(super) fn ladder(row: At, file: &str) -> Result<Vec<Said<u32>>, ImportError> {
    if let Some(list) = row.get("conc-list") {
        let values = list.list();
        if values.is_empty() || values.len() > MOST {
            return Err(list.wrong(file, "this list is empty or far too long", "write the concurrencies"));
        }
        let origin = format!("conc-list (line {})", list.line());
        let one = |at| Ok(Said { origin: origin.clone(), ..conc(Some(at), row, file)? });
        return values.into_iter().map(one).collect();
    }
    let (start, end) = (conc(row.get("conc-start"), row, file)?, conc(row.get("conc-end"), row, file)?);
    if start.value > end.value {
        return Err(row.wrong(file, "`conc-start` is above `conc-end`", "fix it"));
    }
    let origin = format!("conc-start {}, conc-end {} (line {})", start.value, end.value, row.line());
    Ok(doubled(start.value, end.value).into_iter().map(|value| Said { value, origin: origin.clone() }).collect())
}

/// Doubles the first load repeatedly, and ends with the last load.
fn doubled(start: u32, end: u32) -> Vec<u32> {
    let mut values = vec![start];
    let mut value = start;
    while value < end {
        value = value.saturating_mul(2).min(end);
        values.push(value);
    }
    values
}

fn conc(at: Option<At>, row: At, file: &str) -> Result<Said<u32>, ImportError> {
    let remedy = "write `conc-start` and `conc-end`, or `conc-list`, as whole numbers from 1 to 100000";
    let Some(at) = at else { return Err(row.wrong(file, "it has no concurrency", remedy)) };
    let said = at.whole().filter(|said| (1..=MOST_IN_FLIGHT).contains(&said.value));
    said.ok_or_else(|| at.wrong(file, "invalid concurrency", remedy))
}

/// Returns the estimated number of loads of a row, without marking it as read.
pub(super) fn count(row: At) -> usize {
    let number =
        |key: &str| row.get(key).and_then(|at| at.peek().json().as_u64()).and_then(|value| u32::try_from(value).ok());
    match (row.get("conc-list"), number("conc-start"), number("conc-end")) {
        (Some(list), ..) => list.peek().children().len(),
        (None, Some(start), Some(end)) if start > 0 && start <= end => doubled(start, end).len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::doubled;

    #[test]
    fn the_last_one_stands_at_the_end() {
        assert_eq!(doubled(4, 64), [4, 8, 16, 32, 64]);
        assert_eq!(doubled(4, 100), [4, 8, 16, 32, 64, 100]);
        assert_eq!(doubled(256, 256), [256]);
    }
}
