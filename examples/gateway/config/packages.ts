import { ConfigError } from 'express-model-gateway'
import type { LoadedConfig } from 'express-model-gateway/config'

/**
 * Loads a module that imports packages which the toolkit does not bring; undefined if one of them is not installed.
 *
 * @throws whatever else the module throws.
 */
export async function loadOptional<Module>(load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/** The fault of a setting that needs packages which are not installed. */
export function missingPackages(setting: string, packages: string): ConfigError {
  return new ConfigError([
    `${setting}: needs packages that are not installed: npm install ${packages}, or install express-model-gateway-server, which brings them all`,
  ])
}

const PACKAGES = {
  google: { names: 'google-auth-library', load: () => import('google-auth-library') },
  aws: {
    names: '@smithy/signature-v4 @smithy/eventstream-codec @aws-sdk/credential-provider-node',
    load: () =>
      Promise.all([
        import('@smithy/signature-v4'),
        import('@smithy/eventstream-codec'),
        import('@aws-sdk/credential-provider-node'),
      ]),
  },
  s3: {
    names: '@aws-sdk/client-s3 @aws-sdk/lib-storage',
    load: () => Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]),
  },
} as const

/** The packages of a cache in Redis. */
const REDIS_CACHE = { names: '@keyv/redis', load: () => import('@keyv/redis') }

/**
 * Returns a config, or throws what a start would: a running gateway must not take over a config that it, or the next worker,
 * could not start with.
 *
 * @param redisUrl where answers are kept for repeated requests, if a model has a cache; undefined = in memory.
 * @throws {ConfigError} if a member of the config needs packages that are not installed.
 */
export async function startable<Config extends Pick<LoadedConfig, 'catalog' | 'retention'>>(
  config: Config,
  redisUrl?: string,
): Promise<Config> {
  const { catalog, retention } = config
  for (const [i, { credential }] of catalog.lines.entries())
    if (credential && credential.kind !== 'oauth')
      await requirePackages(`lines[${i}].apiKey.${credential.kind}`, PACKAGES[credential.kind])
  if (retention.export?.to.startsWith('s3:')) await requirePackages('retention.export', PACKAGES.s3)
  const cached = [...catalog.models.values()].findIndex(({ cache }) => cache !== undefined)
  if (cached >= 0 && redisUrl !== undefined) await requirePackages(`models[${cached}].cache`, REDIS_CACHE)
  return config
}

async function requirePackages(
  setting: string,
  { names, load }: { readonly names: string; load(): Promise<unknown> },
): Promise<void> {
  if (!(await loadOptional<unknown>(load))) throw missingPackages(setting, names)
}
