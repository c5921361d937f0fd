//! Parses the traffic scenarios of genai-bench: `D(100,1000)`, `N(480,240)/(300,150)`, `U(50,100)/(200,250)`,
//! `E(1024)`, `R(1024,100)`.

use crate::import::spread::Spread;

/// The content of a traffic scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Traffic {
    /// The lengths of prompts and outputs.
    Text(Spread, Spread),
    /// The length of the texts to embed, in tokens.
    Embed(u32),
    /// The lengths of the documents, and of the query by which they are ranked, in tokens.
    Rank(u32, u32),
    /// The contents of the data set.
    Dataset,
}

/// Returns a distribution of lengths around a mean, each of at least `least` tokens; a single length if the
/// deviation is 0.
fn around(mean: u32, sd: u32, least: u32) -> Spread {
    if sd == 0 { Spread::One(mean.max(least)) } else { Spread::around(mean, sd, least) }
}

/// Parses a traffic scenario; an error describes the problem.
pub(super) fn traffic(text: &str) -> Result<Traffic, String> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if text == "dataset" {
        return Ok(Traffic::Dataset);
    }
    let shape = text.chars().next().unwrap_or_default();
    let numbers = groups(text.get(shape.len_utf8()..).unwrap_or_default());
    let numbers: Option<Vec<&[u32]>> = numbers.as_ref().map(|groups| groups.iter().map(Vec::as_slice).collect());
    match (shape, numbers.as_deref().unwrap_or_default()) {
        ('D', [[input, output]]) => Ok(Traffic::Text(Spread::One(*input), Spread::One(*output))),
        ('N', [[input, input_sd], [output, output_sd]]) => {
            Ok(Traffic::Text(around(*input, *input_sd, 1), around(*output, *output_sd, 2)))
        }
        ('U', [[input_min, input_max], [output_min, output_max]]) => {
            let even = |min: u32, max: u32, least: u32| Spread::Even(min.max(least).min(max), max);
            Ok(Traffic::Text(even(*input_min, *input_max, 1), even(*output_min, *output_max, 2)))
        }
        ('U', [[input, output]]) => {
            Ok(Traffic::Text(Spread::Even(1.min(*input), *input), Spread::Even(2.min(*output), *output)))
        }
        ('E', [[tokens]]) => Ok(Traffic::Embed(*tokens)),
        ('R', [[document, query]]) => Ok(Traffic::Rank(*document, *query)),
        ('I' | 'A', [_, ..]) => Err("requests carry text only: images and speech are not measured".to_owned()),
        _ => {
            Err("not a traffic scenario: write D(IN,OUT), N(IN,SD)/(OUT,SD), U(MIN,MAX)/(MIN,MAX), E(N) or R(N,QUERY)"
                .to_owned())
        }
    }
}

/// Returns the numbers of `(1,2)/(3,4)`, grouped by parentheses; `None` if the text has another form.
fn groups(text: &str) -> Option<Vec<Vec<u32>>> {
    let one = |part: &str| -> Option<Vec<u32>> {
        let inner = part.strip_prefix('(')?.strip_suffix(')')?;
        inner.split(',').map(|number| number.parse().ok()).collect()
    };
    text.split('/').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_scenarios_are_lengths() {
        assert_eq!(traffic("D(100, 1000)"), Ok(Traffic::Text(Spread::One(100), Spread::One(1000))));
        let normal = |mean, sd, min, max| Spread::Normal { mean, sd, min, max };
        assert_eq!(
            traffic("N(480,240)/(300,150)"),
            Ok(Traffic::Text(normal(480, 240, 1, 1680), normal(300, 150, 2, 1050)))
        );
        assert_eq!(traffic("N(5000,0)/(25,0)"), Ok(Traffic::Text(Spread::One(5000), Spread::One(25))));
        assert_eq!(traffic("U(50,100)/(200,250)"), Ok(Traffic::Text(Spread::Even(50, 100), Spread::Even(200, 250))));
        assert_eq!(traffic("U(100,200)"), Ok(Traffic::Text(Spread::Even(1, 100), Spread::Even(2, 200))));
        assert_eq!(traffic("E(1024)"), Ok(Traffic::Embed(1024)));
        assert_eq!(traffic("R(64,100)"), Ok(Traffic::Rank(64, 100)));
        assert_eq!(traffic("dataset"), Ok(Traffic::Dataset));
        for wrong in ["", "D", "D(1)", "D(1,2", "X(1,2)", "D(1,-2)", "N(1,2)", "é", "I(512,512)", "D(99999999999,1)"] {
            assert!(traffic(wrong).is_err(), "{wrong}");
        }
    }
}
