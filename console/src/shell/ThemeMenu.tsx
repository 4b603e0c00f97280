import { Icon, type IconName } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { useStored } from "@/lib/stored";
import { chooseTheme, theme, type Theme } from "@/lib/theme";

const CHOICES: readonly { theme: Theme; label: string; icon: IconName }[] = [
  { theme: "light", label: "Light", icon: "sun" },
  { theme: "dark", label: "Dark", icon: "moon" },
  { theme: "system", label: "As the system", icon: "system" },
];

export function ThemeMenu() {
  const chosen = useStored(theme);
  const icon = CHOICES.find((choice) => choice.theme === chosen)?.icon ?? "system";
  return (
    <Menu
      label="Theme"
      button={<Icon name={icon} size={18} />}
      items={CHOICES.map((choice) => ({
        label: choice.theme === chosen ? `${choice.label} (chosen)` : choice.label,
        icon: choice.icon,
        onSelect: () => {
          chooseTheme(choice.theme);
        },
      }))}
    />
  );
}
