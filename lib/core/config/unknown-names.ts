import { type Catalog, compileAllowList, isPattern, overlaps } from '../catalog/index.ts'

/** The part of a catalogue that settings name. */
type Named = Pick<Catalog, 'models' | 'lines'>

/** Returns a warning for each name in the settings of a key that no model has. */
export function keyWarnings(
  { allowModels }: { readonly allowModels?: readonly string[] | null | undefined },
  { models }: Named,
): string[] {
  return (allowModels ?? [])
    .filter((pattern) => {
      const allows = compileAllowList([pattern])
      return ![...models.keys()].some((id) => allows(id) || (isPattern(id) && overlaps(id, pattern)))
    })
    .map((pattern) => `allow_models: there is no model "${pattern}"`)
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
