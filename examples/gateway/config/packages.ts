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

/**
 * Returns a config, or throws what a start would: a running gateway must not take over a config that it, or the next worker,
 * could not start with.
 *
 * @throws {ConfigError} if a member of the config needs packages that are not installed.
 */
export async function startable(config: LoadedConfig): Promise<LoadedConfig> {
  const { catalog, retention } = config
  for (const [i, { credential }] of catalog.lines.entries())
    if (credential && credential.kind !== 'oauth')
      await requirePackages(`lines[${i}].apiKey.${credential.kind}`, credential.kind)
  if (retention.export?.to.startsWith('s3:')) await requirePackages('retention.export', 's3')
  return config
}

async function requirePackages(setting: string, kind: keyof typeof PACKAGES): Promise<void> {
  const { names, load } = PACKAGES[kind]
  if (!(await loadOptional<unknown>(load))) throw missingPackages(setting, names)
}
