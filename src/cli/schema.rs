//! `sweepline schema`: what plans and Parquet files look like, generated from the types.

use clap::{Args, ValueEnum};

use schemars::JsonSchema;

use super::{Exit, Failure, check, compare, dataset, diff, output, preview, show};

/// The arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// What to print
    #[arg(value_enum, default_value = "plan")]
    what: What,
}

/// What can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The JSON Schema of plans (schemas/plan.schema.json).
    Plan,
    /// The JSON Schema of what `check --format json` prints (schemas/check.schema.json).
    Check,
    /// The meaning of the Parquet columns (schemas/columns.md).
    Columns,
    /// The JSON Schema of `preview --format json` (schemas/preview.schema.json).
    Preview,
    /// The JSON Schema of `diff --format json` (schemas/diff.schema.json).
    Diff,
    /// The JSON Schema of `compare --format json` (schemas/compare.schema.json).
    Compare,
    /// The JSON Schema of `show --format json` (schemas/show.schema.json).
    Show,
    /// The JSON Schema of `export --format json`, with every column (schemas/export.schema.json).
    Export,
    /// The JSON Schema of what `dataset profile` writes (schemas/profile.schema.json).
    Profile,
}

/// Prints a schema.
pub fn run(args: SchemaArgs) -> Result<Exit, Failure> {
    match args.what {
        What::Plan => output::print(&crate::plan::schema_text())?,
        What::Check => output::print(&check::schema_text())?,
        What::Columns => output::print(&crate::rows::columns_markdown())?,
        What::Preview => output::print(&preview::schema_text())?,
        What::Diff => output::print(&diff::schema_text())?,
        What::Compare => output::print(&compare::schema_text())?,
        What::Show => output::print(&show::schema_text())?,
        What::Export => output::print(&crate::export::schema::text())?,
        What::Profile => output::print(&dataset::schema_text())?,
    }
    Ok(Exit::Done)
}

/// The JSON Schema (draft 2020-12) of what a command prints, made from its type.
pub fn text_of<T: JsonSchema>(title: &str) -> String {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// `SWEEPLINE_BLESS=1 cargo test --lib` writes them anew.
    #[test]
    fn schemas_of_output_in_the_repository_are_current() {
        for (name, text) in [
            ("check.schema.json", super::check::schema_text()),
            ("preview.schema.json", super::preview::schema_text()),
            ("diff.schema.json", super::diff::schema_text()),
            ("compare.schema.json", super::compare::schema_text()),
            ("show.schema.json", super::show::schema_text()),
            ("profile.schema.json", super::dataset::schema_text()),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
            if std::env::var_os("SWEEPLINE_BLESS").is_some() {
                std::fs::write(&path, &text).expect("the schema can be written");
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{name}: bless it");
        }
    }
}
