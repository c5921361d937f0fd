//! The server's times that the responses themselves report.

use crate::rows::Measured;

/// Returns the mean of a canonical histogram in milliseconds, from the values in the responses of these
/// requests. `None` if no response reports the value. If only some responses report it, returns the
/// reason why there is no mean: values are not missing at random.
pub(super) fn told_mean_ms(rows: &[&Measured], key: &str) -> Option<Result<f64, String>> {
    let of = |row: &&Measured| {
        let times = row.server_times();
        match key {
            "queue_seconds" => times.queue_ns,
            "prefill_seconds" => times.prefill_ns,
            "decode_seconds" => times.decode_ns,
            "e2e_seconds" => times.total_ns,
            _ => None,
        }
    };
    let (sum, told) = rows.iter().filter_map(of).fold((0.0, 0u64), |(sum, told), ns| (sum + ns as f64, told + 1));
    let all = rows.len() as u64;
    match told {
        0 => None,
        told if told < all => Some(Err(format!("only {told} of {all} responses report it"))),
        _ => Some(Ok(sum / told as f64 / 1e6)),
    }
}
