import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { DataTable, type Column } from "@/components/DataTable";
import { draw } from "./render";

interface Fruit {
  name: string;
  weight: number | null;
}

const columns: Column<Fruit>[] = [
  { id: "name", header: "Name", cell: (row) => row.name, sort: (row) => row.name, search: (row) => row.name },
  { id: "weight", header: "Weight", cell: (row) => row.weight ?? "–", sort: (row) => row.weight, align: "right" },
];
const fruit: Fruit[] = [
  { name: "pear 10", weight: 150 },
  { name: "pear 9", weight: null },
  { name: "apple", weight: 180 },
];

const names = (): (string | null)[] =>
  within(screen.getByRole("table"))
    .getAllByRole("row")
    .slice(1)
    .map((row) => row.firstElementChild?.textContent ?? null);

const table = (more: object = {}) => (
  <DataTable label="Fruit" rows={fruit} columns={columns} rowKey={(row) => row.name} sorted="name" searchLabel="Search fruit" {...more} />
);

test("numbers in names are in their order, and a press on the head turns it round", async () => {
  await draw(table());
  expect(names()).toEqual(["apple", "pear 9", "pear 10"]);
  await userEvent.click(screen.getByRole("button", { name: /Name/ }));
  expect(names()).toEqual(["pear 10", "pear 9", "apple"]);
});

test("numbers begin with the largest, what is not known is last", async () => {
  const { router } = await draw(table());
  await userEvent.click(screen.getByRole("button", { name: /Weight/ }));
  expect(names()).toEqual(["apple", "pear 10", "pear 9"]);
  expect(router.state.location.search).toEqual({ sort: "-weight" });
});

test("a search keeps the rows with every word, and is in the address", async () => {
  const { router } = await draw(table());
  await userEvent.type(screen.getByRole("searchbox"), "9 pe");
  expect(names()).toEqual(["pear 9"]);
  expect(router.state.location.search).toEqual({ q: "9 pe" });
});

test("an address with a search shows what it found", async () => {
  await draw(table(), "/?q=apple");
  expect(names()).toEqual(["apple"]);
});

test("the arrow keys go from row to row, Enter opens one", async () => {
  const open = vi.fn();
  await draw(table({ onOpen: open }));
  screen.getByRole("button", { name: "apple" }).focus();
  await userEvent.keyboard("{ArrowDown}{Enter}");
  expect(open).toHaveBeenCalledExactlyOnceWith(fruit[1]);
});
