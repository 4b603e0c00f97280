"""The control API, `/api/v1`: one router per noun."""
