//! Conversion of Rust values to cells of an Arrow column, and back.
//!
//! Every integer column is an Int64, so that the difference of two values cannot overflow, as it could with
//! unsigned integers.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, MapArray, StringArray};
use arrow_schema::{DataType, Field};

/// Why a value cannot be stored in its column, or why a column does not have the expected content.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum CellError {
    /// The column is missing from the file.
    #[error("is missing")]
    Missing,
    /// The column has another type.
    #[error("is of type {0}, not {1}")]
    Type(DataType, DataType),
    /// A required cell has no value.
    #[error("has no value in row {0}")]
    Null(usize),
    /// A cell with an invalid value.
    #[error("has the invalid value `{0}`")]
    Value(String),
    /// A number of more than 63 bits.
    #[error("cannot hold {0}: the largest value is 9223372036854775807")]
    Large(u64),
}

/// A type whose values can be stored in a column. Its columns have no nulls unless the field is an
/// `Option`.
pub(crate) trait Stored: Sized {
    /// Returns the Arrow type of a column of this type.
    fn data_type() -> DataType;
    /// Stores values as a column.
    fn store<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, CellError>
    where
        Self: 'a;
    /// Loads the cells of a column.
    fn load(array: &dyn Array) -> Result<Vec<Option<Self>>, CellError>;
}

/// A field of a row: a value or an optional value.
pub(crate) trait Cell: Sized {
    /// Whether the column may hold nulls.
    const NULLABLE: bool;
    /// Returns the Arrow type of the field's column.
    fn data_type() -> DataType;
    /// Stores cells as a column.
    fn store<'a>(cells: impl Iterator<Item = &'a Self>) -> Result<ArrayRef, CellError>
    where
        Self: 'a;
    /// Loads the cells of a column.
    fn load(array: &dyn Array) -> Result<Vec<Self>, CellError>;
}

impl<T: Stored> Cell for T {
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        <T as Stored>::data_type()
    }
    fn store<'a>(cells: impl Iterator<Item = &'a T>) -> Result<ArrayRef, CellError>
    where
        T: 'a,
    {
        <T as Stored>::store(cells.map(Some))
    }
    fn load(array: &dyn Array) -> Result<Vec<T>, CellError> {
        let cells = <T as Stored>::load(array)?;
        cells.into_iter().enumerate().map(|(row, cell)| cell.ok_or(CellError::Null(row))).collect()
    }
}

impl<T: Stored> Cell for Option<T> {
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        <T as Stored>::data_type()
    }
    fn store<'a>(cells: impl Iterator<Item = &'a Option<T>>) -> Result<ArrayRef, CellError>
    where
        T: 'a,
    {
        <T as Stored>::store(cells.map(Option::as_ref))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<T>>, CellError> {
        <T as Stored>::load(array)
    }
}

/// Casts `array` to `A`, the array type in which values of type `T` are stored.
pub(crate) fn downcast<A: Array + 'static, T: Stored>(array: &dyn Array) -> Result<&A, CellError> {
    let wrong = || CellError::Type(array.data_type().clone(), T::data_type());
    array.as_any().downcast_ref().ok_or_else(wrong)
}

fn int64(value: u64) -> Result<i64, CellError> {
    i64::try_from(value).map_err(|_| CellError::Large(value))
}

macro_rules! stored_as_int64 {
    ($($type:ty),+) => {$(
        impl Stored for $type {
            fn data_type() -> DataType {
                DataType::Int64
            }
            fn store<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, CellError> {
                let mut builder = Int64Builder::new();
                for cell in cells {
                    builder.append_option(cell.map(|value| int64(u64::from(*value))).transpose()?);
                }
                Ok(Arc::new(builder.finish()))
            }
            fn load(array: &dyn Array) -> Result<Vec<Option<Self>>, CellError> {
                let narrow = |value: i64| <$type>::try_from(value).map_err(|_| CellError::Value(value.to_string()));
                downcast::<Int64Array, Self>(array)?.iter().map(|cell| cell.map(narrow).transpose()).collect()
            }
        }
    )+};
}

stored_as_int64!(u64, u32, u16);

impl Stored for bool {
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn store<'a>(cells: impl Iterator<Item = Option<&'a bool>>) -> Result<ArrayRef, CellError> {
        Ok(Arc::new(cells.map(Option::<&bool>::copied).collect::<BooleanArray>()))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<bool>>, CellError> {
        Ok(downcast::<BooleanArray, bool>(array)?.iter().collect())
    }
}

impl Stored for f64 {
    fn data_type() -> DataType {
        DataType::Float64
    }
    fn store<'a>(cells: impl Iterator<Item = Option<&'a f64>>) -> Result<ArrayRef, CellError> {
        Ok(Arc::new(cells.map(Option::<&f64>::copied).collect::<Float64Array>()))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<f64>>, CellError> {
        Ok(downcast::<Float64Array, f64>(array)?.iter().collect())
    }
}

impl Stored for String {
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn store<'a>(cells: impl Iterator<Item = Option<&'a String>>) -> Result<ArrayRef, CellError> {
        Ok(Arc::new(cells.collect::<StringArray>()))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<String>>, CellError> {
        Ok(downcast::<StringArray, String>(array)?.iter().map(|cell| cell.map(str::to_owned)).collect())
    }
}

/// Stores a type as text: its `Display` writes the text, and the given parser reads it.
macro_rules! stored_as_text {
    ($($type:ty: $parse:expr),+ $(,)?) => {$(
        impl $crate::rows::cell::Stored for $type {
            fn data_type() -> arrow_schema::DataType {
                arrow_schema::DataType::Utf8
            }
            fn store<'a>(
                cells: impl Iterator<Item = Option<&'a Self>>,
            ) -> Result<arrow_array::ArrayRef, $crate::rows::cell::CellError> {
                let texts = cells.map(|cell| cell.map(ToString::to_string));
                Ok(std::sync::Arc::new(texts.collect::<arrow_array::StringArray>()))
            }
            fn load(
                array: &dyn arrow_array::Array,
            ) -> Result<Vec<Option<Self>>, $crate::rows::cell::CellError> {
                let unknown = |text: &str| $crate::rows::cell::CellError::Value(text.to_owned());
                let parse = |text| $parse(text).ok_or_else(|| unknown(text));
                let texts = $crate::rows::cell::downcast::<arrow_array::StringArray, Self>(array)?;
                texts.iter().map(|text| text.map(parse).transpose()).collect()
            }
        }
    )+};
}
pub(crate) use stored_as_text;

/// Returns the Arrow field of a list's items, with the name from the Parquet specification.
fn element() -> Field {
    Field::new("element", DataType::Int64, false)
}

impl Stored for Vec<u64> {
    fn data_type() -> DataType {
        DataType::List(Arc::new(element()))
    }
    fn store<'a>(cells: impl Iterator<Item = Option<&'a Vec<u64>>>) -> Result<ArrayRef, CellError> {
        let mut builder = ListBuilder::new(Int64Builder::new()).with_field(element());
        for cell in cells {
            for value in cell.into_iter().flatten() {
                builder.values().append_value(int64(*value)?);
            }
            builder.append(cell.is_some());
        }
        Ok(Arc::new(builder.finish()))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<Vec<u64>>>, CellError> {
        let lists = downcast::<ListArray, Vec<u64>>(array)?.iter();
        lists.map(|list| list.map(|items| <u64 as Cell>::load(&items)).transpose()).collect()
    }
}

/// A column of lists, which a caller reads one at a time into the same buffer.
pub(crate) struct Lists<'a> {
    offsets: &'a [i32],
    values: &'a [i64],
}

impl<'a> Lists<'a> {
    /// Wraps a column of lists. Fails if a list or a value in it is null.
    pub(crate) fn of(array: Option<&'a ArrayRef>) -> Result<Lists<'a>, CellError> {
        let lists: &ListArray = downcast::<ListArray, Vec<u64>>(array.ok_or(CellError::Missing)?)?;
        let values: &Int64Array = downcast::<Int64Array, u64>(lists.values())?;
        if let Some(row) = (0..lists.len()).find(|row| lists.is_null(*row)) {
            return Err(CellError::Null(row));
        }
        if let Some(at) = (0..values.len()).filter(|_| values.null_count() > 0).find(|at| values.is_null(*at)) {
            return Err(CellError::Null(at));
        }
        Ok(Lists { offsets: lists.value_offsets(), values: values.values() })
    }

    /// Reads the list of a row into `list`.
    pub(crate) fn read(&self, row: usize, list: &mut Vec<u64>) -> Result<(), CellError> {
        list.clear();
        for value in &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize] {
            list.push(u64::try_from(*value).map_err(|_| CellError::Value(value.to_string()))?);
        }
        Ok(())
    }
}

/// Returns the names of a map's parts, from the Parquet specification.
fn map_names() -> MapFieldNames {
    MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() }
}

fn map_field(name: String) -> Arc<Field> {
    Arc::new(Field::new(name, DataType::Utf8, false))
}

impl Stored for BTreeMap<String, String> {
    fn data_type() -> DataType {
        let MapFieldNames { entry, key, value } = map_names();
        let entries = DataType::Struct([map_field(key), map_field(value)].into_iter().collect());
        DataType::Map(Arc::new(Field::new(entry, entries, false)), false)
    }
    fn store<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Result<ArrayRef, CellError> {
        let mut builder = MapBuilder::new(Some(map_names()), StringBuilder::new(), StringBuilder::new())
            .with_values_field(map_field(map_names().value));
        for cell in cells {
            for (key, value) in cell.into_iter().flatten() {
                builder.keys().append_value(key);
                builder.values().append_value(value);
            }
            builder.append(cell.is_some()).expect("as many keys as values");
        }
        Ok(Arc::new(builder.finish()))
    }
    fn load(array: &dyn Array) -> Result<Vec<Option<Self>>, CellError> {
        let maps = downcast::<MapArray, Self>(array)?.iter();
        maps.map(|map| {
            let Some(entries) = map else { return Ok(None) };
            let keys = <String as Cell>::load(entries.column(0))?;
            let values = <String as Cell>::load(entries.column(1))?;
            Ok(Some(keys.into_iter().zip(values).collect()))
        })
        .collect()
    }
}
