//! The presets: lengths of four kinds of traffic, given by mean, standard deviation, minimum and
//! maximum for prompts and responses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::model::lengths::resolved::{Distribution, Lengths, Range};
use crate::units::Decimal;

/// A kind of traffic with named lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Short questions and answers: prompts of 500 ± 300 tokens (50 to 4 000), responses of 200 ± 150
    /// (10 to 2 000).
    Chat,
    /// Programming: prompts of 1 500 ± 800 tokens (200 to 8 000), responses of 500 ± 400 (50 to 4 000).
    Code,
    /// Questions about long documents: prompts of 16 000 ± 12 000 tokens (2 000 to 128 000), responses
    /// of 300 ± 200 (20 to 2 000).
    LongContextQa,
    /// Summaries: prompts of 4 000 ± 2 000 tokens (500 to 32 000), responses of 150 ± 80 (50 to 500).
    Summarization,
}

/// How the figures of a preset are interpreted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresetFit {
    /// A lognormal distribution with the preset's mean and standard deviation, truncated to its minimum
    /// and maximum.
    #[default]
    Lognormal,
    /// A truncated lognormal distribution whose median is the preset's mean and whose sigma is 0.8, for
    /// comparison with tools that interpret presets this way. Its mean is 1.38 times the preset's.
    #[serde(rename = "lognormal_sigma_0_8")]
    LognormalSigma08,
}

/// Mean, standard deviation, minimum and maximum, in tokens.
struct Figures {
    mean: u32,
    sd: u32,
    within: Range,
}

const fn figures(mean: u32, sd: u32, min: u32, max: u32) -> Figures {
    Figures { mean, sd, within: Range { min, max } }
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 4] = [Preset::Chat, Preset::Code, Preset::LongContextQa, Preset::Summarization];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; 4] = ["chat", "code", "long_context_qa", "summarization"];

    /// The name that plans use.
    pub fn name(self) -> &'static str {
        Preset::NAMES[self as usize]
    }

    /// The preset of this name.
    pub fn of_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Figures of prompt and response.
    fn figures(self) -> [Figures; 2] {
        match self {
            Preset::Chat => [figures(500, 300, 50, 4_000), figures(200, 150, 10, 2_000)],
            Preset::Code => [figures(1_500, 800, 200, 8_000), figures(500, 400, 50, 4_000)],
            Preset::LongContextQa => [figures(16_000, 12_000, 2_000, 128_000), figures(300, 200, 20, 2_000)],
            Preset::Summarization => [figures(4_000, 2_000, 500, 32_000), figures(150, 80, 50, 500)],
        }
    }

    /// Its lengths, interpreted according to `shape`.
    pub fn lengths(self, shape: PresetFit) -> Lengths {
        let [prompt, output] = self.figures().map(|Figures { mean, sd, within }| match shape {
            PresetFit::Lognormal => {
                Distribution::Lognormal { mean: Decimal::from(mean), sd: Decimal::from(sd), within }
            }
            PresetFit::LognormalSigma08 => {
                Distribution::LognormalMedian { median: Decimal::from(mean), sigma: Decimal::new(8, 1), within }
            }
        });
        Lengths::Each { prompt, output }
    }
}
