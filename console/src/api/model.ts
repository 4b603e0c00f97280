import type { Readable } from "openapi-typescript-helpers";
import type { components } from "./schema";

/** The nouns of the API as pages speak of them: names for the types that are generated from its description. */

type Described = components["schemas"];

// As the client's answers have them: it reads a list of fixed length as a list.
export type Schemas = { [Name in keyof Described]: Readable<Described[Name]> };

export type Role = "reader" | "writer" | "admin";

export type Grant = Schemas["GrantAnswer"];

export type Session = Schemas["SessionAnswer"];

export type Process = Schemas["ProcessAnswer"];

export type Table = Schemas["TableAnswer"];

export type Statement = Schemas["StatementAnswer"];

export type Catalog = Schemas["CatalogStandingAnswer"];

export type ExportSummary = Schemas["ExportStandingAnswer"];

export type Attention = Schemas["AttentionAnswer"];

/** The small state of all there is: what `GET /api/v1/status` answers, and what the live stream sends. */
export type Status = Schemas["StatusAnswer"];

export type Figures = Schemas["FiguresAnswer"];

/** One moment's figures, in total and by table and statement. */
export type Sample = Schemas["SampleAnswer"];
