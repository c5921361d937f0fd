//! LongBench-v2: a long text, a question about the text, and four choices.

use crate::dataset::error::Bad;
use crate::dataset::record::{Record, Role, Turn};
use crate::dataset::value::{Fields, get, label, need, text};

use super::draft::Draft;

/// The prompt that the benchmark's authors use without chain of thought (prompts/0shot.txt of THUDM/LongBench).
pub(super) fn read(fields: &Fields) -> Result<Draft, Bad> {
    let field = |name: &'static str| text(name, need(fields, name)?).map(str::trim);
    let context = field("context")?;
    let question = field("question")?;
    let [a, b, c, d] = [field("choice_A")?, field("choice_B")?, field("choice_C")?, field("choice_D")?];
    let prompt = format!(
        "Please read the following text and answer the question below.\n\n<text>\n{context}\n</text>\n\n\
         What is the correct answer to this question: {question}\nChoices:\n(A) {a}\n(B) {b}\n(C) {c}\n(D) {d}\n\n\
         Format your response as follows: \"The correct answer is (insert answer here)\"."
    );
    let id = get(fields, "_id").map(|id| label("_id", id)).transpose()?;
    let turns = vec![Turn { role: Role::User, text: prompt }];
    Ok(Draft { record: Record { id, turns, ..Record::default() }, time: None })
}
