//! Times for people, in the local time zone of the machine. Data for programs and tables use UTC with a
//! trailing `Z`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// `14:43` for a time today, `2026-11-21 14:43` for another day.
pub fn time_of(at: Timestamp) -> String {
    time_seen(&at.to_zoned(TimeZone::system()), &Zoned::now())
}

/// The current time: `14:43:05`.
pub fn time_now() -> String {
    Zoned::now().strftime("%H:%M:%S").to_string()
}

fn time_seen(at: &Zoned, now: &Zoned) -> String {
    let format = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_said_of_another_day() {
        let zoned = |text: &str| text.parse::<Timestamp>().unwrap().to_zoned(TimeZone::fixed(jiff::tz::offset(1)));
        let now = zoned("2026-11-22T08:00:00Z");
        assert_eq!(time_seen(&zoned("2026-11-21T23:30:00Z"), &now), "00:30", "today in local time");
        assert_eq!(time_seen(&zoned("2026-11-21T22:30:00Z"), &now), "2026-11-21 23:30");
    }
}
