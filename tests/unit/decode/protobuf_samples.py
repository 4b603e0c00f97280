"""Protobuf schemas and messages of them, by the real compiler and Google's own classes."""

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from headgate.decode.protos import compiled, message_paths


def message_class(text: str, name: str, references: Sequence[tuple[str, str]] = ()) -> Any:
    return _message_class(text, name, tuple(references))


@lru_cache
def _message_class(text: str, name: str, references: tuple[tuple[str, str], ...]) -> Any:
    """One class for each type: messages of two are never equal."""
    return GetMessageClass(compiled(text, references).pool().FindMessageTypeByName(name))


def base64_of(text: str, references: Sequence[tuple[str, str]] = ()) -> str:
    """The schema as Confluent's Python serializer registers it."""
    return base64.b64encode(compiled(text, references).files[-1]).decode()


def path_of(text: str, name: str, references: Sequence[tuple[str, str]] = ()) -> tuple[int, ...]:
    return {found: path for path, found in message_paths(compiled(text, references).main)}[name]


# One field of every type, in every place where it can stand.
EVERYTHING = """
syntax = "proto3";
package every;
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";

enum Color { RED = 0; GREEN = 1; BELOW = -5; }
message Inner { int32 x = 1; repeated string tags = 2; optional bool flag = 3; }
message Every {
  int32 i32 = 1; sint32 s32 = 2; sfixed32 sf32 = 3; uint32 u32 = 4; fixed32 f32 = 5;
  int64 i64 = 6; sint64 s64 = 7; sfixed64 sf64 = 8; uint64 u64 = 9; fixed64 f64 = 10;
  float fl = 11; double db = 12; bool bo = 13; string st = 14; bytes by = 15; Color co = 16; Inner me = 17;
  repeated int32 l_i32 = 18; repeated string l_st = 19; repeated Inner l_me = 20; repeated Color l_co = 21;
  map<string, int32> m_st = 22; map<uint64, Inner> m_u64 = 23; map<int32, Color> m_i32 = 24;
  oneof choice { string o_st = 25; int64 o_i64 = 26; Inner o_me = 27; google.protobuf.Empty o_em = 28; }
  google.protobuf.Int64Value w_i64 = 29; google.protobuf.StringValue w_st = 30;
  google.protobuf.UInt64Value w_u64 = 31; google.protobuf.BytesValue w_by = 32;
  google.protobuf.BoolValue w_bo = 33; google.protobuf.DoubleValue w_db = 34;
  google.protobuf.FloatValue w_fl = 35; google.protobuf.Int32Value w_i32 = 36;
  google.protobuf.UInt32Value w_u32 = 37;
  google.protobuf.Timestamp ts = 38; repeated google.protobuf.Timestamp l_ts = 39;
  google.protobuf.Duration du = 40; google.type.Date da = 41; google.type.TimeOfDay tod = 42;
  google.protobuf.Struct js = 43; google.protobuf.Value jv = 44; google.protobuf.ListValue jl = 45;
  google.protobuf.Any an = 46; google.protobuf.FieldMask fm = 47; google.protobuf.Empty em = 48;
  confluent.type.Decimal de = 49 [(confluent.field_meta) = {
    params: [{key: "precision", value: "10"}, {key: "scale", value: "2"}]
  }];
  confluent.type.Decimal plain_de = 50;
  optional int32 p_i32 = 51; optional string p_st = 52; optional Color p_co = 53;
  repeated bool l_bo = 54; repeated double l_db = 55; repeated fixed32 l_f32 = 56; repeated uint64 l_u64 = 57;
  map<bool, google.protobuf.Timestamp> m_bo = 58; repeated google.protobuf.Int64Value l_w = 59;
  repeated bytes l_by = 60; repeated sint64 l_s64 = 61; map<string, google.protobuf.StringValue> m_w = 62;
  optional bytes p_by = 63; optional uint64 p_u64 = 64; optional double p_db = 65;
}
"""
