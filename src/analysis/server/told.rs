//! What answers themselves tell of their server's times.

use crate::rows::Measured;

/// The mean of a canonical histogram in milliseconds, by what each of these requests was told in its answer. None where none was told; the
/// reason where some were not, for whose are missing is not chance.
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
        told if told < all => Some(Err(format!("{told} of {all} answers tell it"))),
        _ => Some(Ok(sum / told as f64 / 1e6)),
    }
}
