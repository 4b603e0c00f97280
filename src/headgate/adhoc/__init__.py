"""SELECTs that stand alone: run in the query driver for as long as somebody reads them."""
