//! libFuzzer's entry point to the metrics parser: any bytes, as the page of a server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sweepline::telemetry::page::Wanted;
use sweepline::telemetry::text::samples;

fuzz_target!(|bytes: &[u8]| {
    let page = String::from_utf8_lossy(bytes);
    let lines = page.split('\n').count();
    assert!(samples(&page).count() <= lines, "a line is at most one sample");
    for sample in samples(&page).flatten() {
        // Labels were checked before: each of them can be read.
        sample.labels.iter().for_each(|(name, value)| drop((name, value)));
    }
    if let Ok(reading) = Wanted::new([], ["a".to_owned()]).read(&page) {
        assert!(reading.canonical.iter().all(|(_, _, value)| value.is_finite()));
    }
});
