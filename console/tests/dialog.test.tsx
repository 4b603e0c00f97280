import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ConfirmDialog } from "@/components/Dialog";
import { draw } from "./render";

beforeEach(() => {
  // jsdom draws no dialogs.
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.open = false;
  };
});

test("what loses data is not done before its name is typed", async () => {
  const confirm = vi.fn();
  await draw(
    <ConfirmDialog title="Purge" confirm="Purge the table" typed="orders" open onClose={vi.fn()} onConfirm={confirm}>
      <p>Its files are deleted.</p>
    </ConfirmDialog>,
  );
  const button = screen.getByRole<HTMLButtonElement>("button", { name: "Purge the table" });
  await userEvent.type(screen.getByRole("textbox"), "order{Enter}");
  expect(button.disabled).toBe(true);
  expect(confirm).not.toHaveBeenCalled();
  await userEvent.type(screen.getByRole("textbox"), "s");
  await userEvent.click(button);
  expect(confirm).toHaveBeenCalledOnce();
});
