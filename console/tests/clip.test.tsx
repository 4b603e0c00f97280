import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { Clip, visible } from "@/components/Clip";
import { Sentence } from "@/components/CodeBlock";
import { draw } from "./render";

test("markup is text", async () => {
  const { container } = await draw(<Clip text="<script>alert(1)</script><img src=x onerror=alert(1)>" />);
  expect(container.querySelector("script, img")).toBeNull();
  expect(container.textContent).toContain("<script>");
});

test("marks that turn the direction of text are shown as what they are", () => {
  expect(visible("abc\u202etxt.exe")).toBe("abc⟨202e⟩txt.exe");
  expect(visible("a\u0000b")).toBe("a␀b");
  expect(visible("שלום")).toBe("שלום");
});

test("a value of 10,000 characters is cut, its beginning is on hover", async () => {
  const { container } = await draw(<Clip text={"x".repeat(10_000)} />);
  const clip = container.querySelector("bdi");
  expect(clip?.textContent.length).toBeLessThan(400);
  expect(clip?.title.length).toBeLessThan(2100);
});

test("a character of two units is not halved", async () => {
  const { container } = await draw(<Clip text={`${"x".repeat(299)}😀${"y".repeat(50)}`} />);
  expect(container.textContent).toBe(`${"x".repeat(299)}…`);
});

test("a command in a remedy can be copied", async () => {
  await draw(<Sentence text="See that it is running: `headgate status`." />);
  expect(screen.getByText("headgate status").tagName).toBe("CODE");
  expect(screen.getByRole("button", { name: "Copy the command" })).toBeTruthy();
});
