//! Tests that parsing the printed form of a unit returns the same value, and that errors contain a remedy.

use super::*;
use proptest::prelude::*;

#[test]
fn durations_need_a_unit() {
    assert_eq!("1m30s".parse(), Ok(Nanos::from_secs(90)));
    assert_eq!("2.5ms".parse(), Ok(Nanos(2_500_000)));
    assert!("120".parse::<Nanos>().unwrap_err().0.contains("120s"));
    assert!("0.1ns".parse::<Nanos>().is_err());
    assert!("5 parsecs".parse::<Nanos>().is_err());
}

#[test]
fn a_duration_is_spoken_in_seconds_from_one_on() {
    let spoken = |text: &str| text.parse::<Nanos>().expect("a duration").spoken();
    assert_eq!(["1400ms", "999ms", "90500ms", "2m", "1000ms"].map(spoken), ["1.4s", "999ms", "90.5s", "2m", "1s"]);
    assert_eq!(Nanos(1_234_567_891).spoken(), "1.235s");
}

#[test]
fn decimals_are_exact() {
    let text = |t: &str| t.parse::<Decimal>().unwrap().to_string();
    assert_eq!(text("0.10"), "0.1");
    assert_eq!(text("1e-7"), "0.0000001");
    assert_eq!(text("-0.5"), "-0.5");
    assert_eq!(text("70.6e9"), "70600000000");
    assert!("1.2.3".parse::<Decimal>().is_err());
    assert_eq!("0.5%".parse::<Share>().unwrap().to_string(), "0.5%");
    assert_eq!(Share::percent(10).to_string(), "10%");
}

proptest! {
    #[test]
    fn a_duration_prints_as_it_parses(ns in 0u64..u64::MAX / 2) {
        prop_assert_eq!(Nanos(ns).to_string().parse(), Ok(Nanos(ns)));
    }

    #[test]
    fn a_decimal_prints_as_it_parses(mantissa in -1_000_000_000_000i64..1_000_000_000_000, scale in 0u8..12) {
        let decimal = Decimal::new(mantissa, scale);
        prop_assert_eq!(decimal.to_string().parse(), Ok(decimal));
    }

    #[test]
    fn decimals_order_like_numbers(a in -10_000i64..10_000, b in -10_000i64..10_000, s in 0u8..4, t in 0u8..4) {
        let (x, y) = (Decimal::new(a, s), Decimal::new(b, t));
        prop_assert_eq!(x.cmp(&y), x.to_f64().total_cmp(&(y.to_f64() + 0.0)));
    }
}
