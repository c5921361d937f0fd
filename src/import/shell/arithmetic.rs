//! `$(( … ))` over whole numbers. Scripts use it to compute the number of prompts from rate and
//! time.

use super::variable::{Variable, Variables};

/// The maximum length of an expression in a benchmark.
const LONGEST: usize = 200;

/// Returns the value of an expression, if all of it is known.
pub(super) fn value(text: &str, variables: &Variables) -> Option<i64> {
    if text.len() > LONGEST {
        return None;
    }
    let mut reader = Reader { rest: text, variables };
    let value = reader.sum()?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    variables: &'a Variables,
}

impl Reader<'_> {
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let sign = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(sign)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let other = self.product()?;
            value = if sign == '+' { value.checked_add(other)? } else { value.checked_sub(other)? };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.operand()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let other = self.operand()?;
            value = match sign {
                '*' => value.checked_mul(other)?,
                '/' => value.checked_div(other)?,
                _ => value.checked_rem(other)?,
            };
        }
        Some(value)
    }

    fn operand(&mut self) -> Option<i64> {
        if self.sign(&['(']).is_some() {
            let value = self.sum()?;
            return self.sign(&[')']).map(|_| value);
        }
        if self.sign(&['-']).is_some() {
            return self.operand()?.checked_neg();
        }
        self.rest = self.rest.trim_start().trim_start_matches(['$', '{']);
        let length = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest.strip_prefix('}').unwrap_or(rest);
        match self.variables.get(word) {
            Some(Variable::Text(text)) => text.trim().parse().ok(),
            Some(Variable::List(_) | Variable::Branched) => None,
            None => word.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_compute_with_whole_numbers() {
        let variables = Variables::from([
            ("RATE".to_owned(), Variable::Text("10".to_owned())),
            ("N".to_owned(), Variable::List(vec![])),
        ]);
        for (text, expected) in [
            ("RATE * 60", Some(600)),
            ("$RATE*(2+${RATE})/ 4 - -1", Some(31)),
            ("RATE / 0", None),
            ("9223372036854775807 + 1", None),
            ("N * 2", None),
            ("unset", None),
            ("1 2", None),
            ("", None),
        ] {
            assert_eq!(value(text, &variables), expected, "{text}");
        }
    }
}
