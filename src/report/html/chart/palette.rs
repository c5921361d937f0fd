//! The colours of charts. A drawing uses the colours of the light page. `style.css` maps each colour to a
//! variable, so that a drawing follows the theme and a saved file also works on its own.
//!
//! Series have the hues of Okabe and Ito, darkened if their contrast to white is too low (3:1, WCAG
//! 1.4.11). Each series also has its own marker, so that colour is never the only difference.

use plotters::style::RGBColor;

/// Texts.
pub(super) const INK: RGBColor = RGBColor(0x1F, 0x23, 0x28);
/// Axes and ticks.
pub(super) const AXIS: RGBColor = RGBColor(0x6E, 0x77, 0x81);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xD8, 0xDE, 0xE4);
/// The line of an objective or a reference.
pub(super) const LIMIT: RGBColor = RGBColor(0xB4, 0x23, 0x18);
/// The background, which is also inside hollow markers.
pub(super) const GROUND: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);

/// Series, in the order of their use.
pub(super) const SERIES: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xC8, 0x55, 0x00),
    RGBColor(0x00, 0x80, 0x5D),
    RGBColor(0xA8, 0x4A, 0x80),
    RGBColor(0x8A, 0x63, 0x00),
    RGBColor(0x4A, 0x50, 0x58),
];

/// The steps of a heat map, from the lowest values to the highest. All have the same hue, and each step
/// is darker than the previous one (brighter in the dark theme), so that they can be distinguished
/// without colour vision. Texts in [`INK`] are readable on every step.
pub(super) const HEAT: [RGBColor; 5] = [
    RGBColor(0xE8, 0xF1, 0xF8),
    RGBColor(0xC9, 0xDF, 0xF0),
    RGBColor(0xA6, 0xCB, 0xE6),
    RGBColor(0x7F, 0xB3, 0xDA),
    RGBColor(0x5A, 0x9A, 0xCB),
];

/// The colour of a series, by its index among the series of a chart.
pub(super) fn series(slot: usize) -> RGBColor {
    SERIES[slot % SERIES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = include_str!("../templates/style.css");

    fn hex(RGBColor(r, g, b): RGBColor) -> String {
        format!("#{r:02X}{g:02X}{b:02X}")
    }

    /// Returns the relative luminance as defined by WCAG 2.
    fn luminance([r, g, b]: [u8; 3]) -> f64 {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn rgb(text: &str) -> [u8; 3] {
        let at = |from: usize| u8::from_str_radix(&text[from..from + 2], 16).unwrap();
        [at(1), at(3), at(5)]
    }

    /// Returns the value of a variable in the block of a theme.
    fn variable(theme: &str, name: &str) -> [u8; 3] {
        let block = STYLE.split(theme).nth(1).unwrap_or_else(|| panic!("style.css has no {theme}"));
        let value = block.split(&format!("{name}: ")).nth(1).unwrap_or_else(|| panic!("{theme} has no {name}"));
        rgb(&value[..7])
    }

    #[test]
    fn every_colour_follows_the_theme() {
        for colour in SERIES.into_iter().chain(HEAT).chain([INK, AXIS, GRID, LIMIT, GROUND]) {
            let hex = hex(colour);
            for attribute in ["fill", "stroke"] {
                let rule = format!("[{attribute}=\"{hex}\"]");
                assert!(STYLE.contains(&rule), "style.css has no rule for {rule}");
            }
        }
    }

    #[test]
    fn what_is_drawn_stands_out_from_both_grounds() {
        for theme in ["/* light */", "/* dark */"] {
            let ground = variable(theme, "--ground");
            let marks = (0..SERIES.len()).map(|slot| format!("--s{slot}")).chain(["--axis".into(), "--limit".into()]);
            for name in marks {
                let found = contrast(variable(theme, &name), ground);
                assert!(found >= 3.0, "{theme} {name}: {found:.2}");
            }
            for name in ["--ink", "--muted", "--link", "--good", "--doubt", "--bad"] {
                let found = contrast(variable(theme, name), ground);
                assert!(found >= 4.5, "{theme} {name}: {found:.2}");
            }
        }
    }
    #[test]
    fn numbers_can_be_read_on_every_step_of_a_heat_map() {
        for theme in ["/* light */", "/* dark */"] {
            let steps: Vec<[u8; 3]> = (0..HEAT.len()).map(|step| variable(theme, &format!("--h{step}"))).collect();
            for (number, step) in steps.iter().enumerate() {
                let found = contrast(variable(theme, "--ink"), *step);
                assert!(found >= 4.5, "{theme} --h{number}: {found:.2}");
            }
            for (number, pair) in steps.windows(2).enumerate() {
                let found = contrast(pair[0], pair[1]);
                assert!(found >= 1.2, "{theme} --h{number} and the next: {found:.2}");
            }
            let away: Vec<f64> = steps.iter().map(|step| contrast(variable(theme, "--ground"), *step)).collect();
            assert!(away.is_sorted(), "{theme}: each step is further from the background: {away:?}");
        }
    }
}
