//! The type that defines a stored column, and the macro that declares a row type with its columns and
//! conversions.

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field};

use super::cell::{Cell, CellError};

/// The encoding of a column in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pack {
    /// Few distinct values, stored with a dictionary.
    Dictionary,
    /// Values that are close to those of adjacent rows, stored as DELTA_BINARY_PACKED without a dictionary.
    Delta,
    /// Long lists of small numbers, stored like `Delta` but without statistics.
    Gaps,
    /// Values that rarely repeat, stored without a dictionary.
    Plain,
}

/// The definition of one stored column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The name in the file.
    pub name: &'static str,
    /// The Arrow type.
    pub data_type: fn() -> DataType,
    /// Whether a cell may be null.
    pub nullable: bool,
    /// The unit of the value; empty for names and texts.
    pub unit: &'static str,
    /// The meaning of the column. Each entry is a line of the doc comment.
    pub doc: &'static [&'static str],
    /// How the column is encoded in Parquet.
    pub(crate) pack: Pack,
}

impl Column {
    /// Returns the Arrow field of this column.
    pub fn field(&self) -> Field {
        Field::new(self.name, (self.data_type)(), self.nullable)
    }
}

/// The name of a column that could not be stored or loaded, and the reason.
pub(crate) type BadColumn = (&'static str, CellError);

/// Loads the values of the column `name` from a batch. A nullable column may be missing from a file that
/// an older version wrote; its values are then null.
pub(super) fn load<T: Cell>(batch: &RecordBatch, name: &'static str) -> Result<std::vec::IntoIter<T>, BadColumn> {
    let absent;
    let array: &dyn Array = match batch.column_by_name(name) {
        Some(array) => array,
        None if T::NULLABLE => {
            absent = new_null_array(&T::data_type(), batch.num_rows());
            &absent
        }
        None => return Err((name, CellError::Missing)),
    };
    T::load(array).map(Vec::into_iter).map_err(|why| (name, why))
}

/// A row type that can be converted to columns and back.
pub(crate) trait Row: Sized {
    /// Converts rows to arrays, one for each column.
    fn arrays<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Result<Vec<ArrayRef>, BadColumn>
    where
        Self: 'a;
    /// Converts a batch to rows. The columns of the batch may be in any order.
    fn from_batch(batch: &RecordBatch) -> Result<Vec<Self>, BadColumn>;
}

/// Declares a row type and its columns. A `derived` column is computed from the row when the row is
/// written, and skipped when it is read. Columns are stored in the order of their declaration, so the
/// fields after the derived column are declared in `then`.
macro_rules! table {
    (
        $(#[$attr:meta])*
        pub struct $row:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty [$pack:ident $unit:literal], )+
        }
        $(
            derived { $(#[doc = $d_doc:literal])+ $d_field:ident: $d_type:ty [$d_pack:ident $d_unit:literal] = $derive:path, }
            then { $( $(#[doc = $t_doc:literal])+ $t_field:ident: $t_type:ty [$t_pack:ident $t_unit:literal], )+ }
        )?
    ) => {
        $(#[$attr])*
        pub struct $row {
            $( $(#[doc = $doc])+ pub $field: $type, )+
            $( $( $(#[doc = $t_doc])+ pub $t_field: $t_type, )+ )?
        }

        impl $row {
            /// The columns, in order.
            pub(crate) const COLUMNS: &'static [Column] = &[
                $( table!(@column $field, $type, $pack, $unit, [$($doc),+]), )+
                $(
                    table!(@column $d_field, $d_type, $d_pack, $d_unit, [$($d_doc),+]),
                    $( table!(@column $t_field, $t_type, $t_pack, $t_unit, [$($t_doc),+]), )+
                )?
            ];
        }

        impl Row for $row {
            fn arrays<'a>(rows: impl Iterator<Item = &'a Self> + Clone) -> Result<Vec<ArrayRef>, BadColumn> {
                Ok(vec![
                    $( table!(@store rows, $field, $type), )+
                    $(
                        {
                            let derived: Vec<$d_type> = rows.clone().map($derive).collect();
                            <$d_type as Cell>::store(derived.iter()).map_err(|why| (stringify!($d_field), why))?
                        },
                        $( table!(@store rows, $t_field, $t_type), )+
                    )?
                ])
            }

            fn from_batch(batch: &RecordBatch) -> Result<Vec<Self>, BadColumn> {
                $( let mut $field = load::<$type>(batch, stringify!($field))?; )+
                $( $( let mut $t_field = load::<$t_type>(batch, stringify!($t_field))?; )+ )?
                let row = |_| Some($row {
                    $( $field: $field.next()?, )+
                    $( $( $t_field: $t_field.next()?, )+ )?
                });
                Ok((0..batch.num_rows()).map_while(row).collect())
            }
        }
    };
    (@column $name:ident, $type:ty, $pack:ident, $unit:literal, [$($doc:literal),+]) => {
        Column {
            name: stringify!($name),
            data_type: <$type as Cell>::data_type,
            nullable: <$type as Cell>::NULLABLE,
            unit: $unit,
            doc: &[$($doc),+],
            pack: Pack::$pack,
        }
    };
    (@store $rows:ident, $name:ident, $type:ty) => {
        <$type as Cell>::store($rows.clone().map(|row| &row.$name)).map_err(|why| (stringify!($name), why))?
    };
}
pub(super) use table;
