import { type Catalog, compileAllowList, isPattern, overlaps } from '../catalog/index.ts'

/** The part of a catalogue that settings name. */
type Named = Pick<Catalog, 'models' | 'lines'>

/**
 * Returns a warning for each name in the settings of a key that no model has.
 *
 * @param isUnknown whether no model has a name. Many keys may have the same.
 */
export function keyWarnings(
  { allowModels }: { readonly allowModels?: readonly string[] | null | undefined },
  catalog: Named,
  isUnknown = (name: string): boolean => isUnknownModel(name, catalog),
): string[] {
  return (allowModels ?? []).filter(isUnknown).map((name) => `allow_models: there is no model "${name}"`)
}

/** Whether no model has a name, which may be a pattern. */
export function isUnknownModel(name: string, { models }: Named): boolean {
  const allows = compileAllowList([name])
  return ![...models.keys()].some((id) => allows(id) || (isPattern(id) && overlaps(id, name)))
}

/** Returns a warning for each region in the settings of an account that no line has. */
export function accountWarnings(
  { lineRegions }: { readonly lineRegions?: readonly string[] | null | undefined },
  { lines }: Named,
): string[] {
  return (lineRegions ?? [])
    .filter((region) => !lines.some((line) => line.region === region))
    .map((region) => `line_regions: there is no line in the region "${region}"`)
}
