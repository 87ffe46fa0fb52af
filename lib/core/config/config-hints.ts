import { type Catalog, DEFAULT_MAX_TOKENS } from '../catalog/index.ts'

/** Returns a hint for each setting of a config that is valid and has a consequence that you may not expect. */
export function configHints({ models, linesOf }: Pick<Catalog, 'models' | 'linesOf'>): string[] {
  return [...models.values()]
    .filter(({ id, kind, maxOutputTokens }) => {
      const isOnAnthropic = linesOf(id).some(({ protocol }) => protocol === 'anthropic')
      return kind === 'chat' && maxOutputTokens === undefined && isOnAnthropic
    })
    .map(
      ({ id }) =>
        `models: "${id}" has no "maxOutputTokens"; on lines with the protocol "anthropic", answers to requests without a maximum are cut at ${DEFAULT_MAX_TOKENS} tokens`,
    )
}
