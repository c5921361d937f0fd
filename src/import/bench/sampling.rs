//! Sampling parameters that not every server knows → `extra` of the scenario.

use super::{Arguments, Said};
use crate::import::draft::Field;
use crate::plan::Engine;
use crate::plan::Json;
use crate::plan::extra::dialect::{names, takes};
use crate::plan::extra::of_engine;
use crate::units::Decimal;

/// The options, and the fields of a request that they set.
const OPTIONS: [(&str, &str); 3] =
    [("top-k", "top_k"), ("min-p", "min_p"), ("repetition-penalty", "repetition_penalty")];

/// The field `extra` with what the command says and the endpoint's engine takes; the rest is listed.
pub(super) fn extra(arguments: &Arguments, endpoint: &[Field]) -> Option<Field> {
    let engine = endpoint.iter().find(|field| field.key == "engine").and_then(|field| of_engine(&field.value));
    let (mut fields, mut origins) = (Vec::new(), Vec::new());
    for (option, key) in OPTIONS {
        let Some(Said { value, origin }) = arguments.number::<Decimal>(option, "a number") else { continue };
        let takes = takes(key).filter(|takes| !takes.takes(&Json::Number(value)));
        if let Some(takes) = takes {
            arguments.missing(&origin, &format!("{key} is {}, which {value} is not", takes.wanted()));
            continue;
        }
        match engine.filter(|engine| names(*engine, key)) {
            Some(_) => {
                fields.push(format!("{key}: {value}"));
                origins.push(origin);
            }
            None => {
                let engine = engine.map_or("the server's engine", Engine::name);
                let why = format!(
                    "whether `{engine}` takes {key} is not known: write `extra: {{ {key}: {value} }}` if it does"
                );
                arguments.missing(&origin, &why);
            }
        }
    }
    (!fields.is_empty()).then(|| Field::new("extra", format!("{{ {} }}", fields.join(", ")), origins.join(", ")))
}
