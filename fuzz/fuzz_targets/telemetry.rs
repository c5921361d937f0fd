//! libFuzzer's door to the reader of metrics: any bytes, as a page that a server answers with.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sweepline::telemetry::page::Wanted;
use sweepline::telemetry::text::samples;

fuzz_target!(|bytes: &[u8]| {
    let page = String::from_utf8_lossy(bytes);
    let lines = page.split('\n').count();
    assert!(samples(&page).count() <= lines, "a line is one sample at most");
    for sample in samples(&page).flatten() {
        // Labels were found well-formed: every one of them reads.
        sample.labels.iter().for_each(|(name, value)| drop((name, value)));
    }
    if let Ok(reading) = Wanted::new([], ["a".to_owned()]).read(&page) {
        assert!(reading.canonical.iter().all(|(_, _, value)| value.is_finite()));
    }
});
