/** How the deployments of a LiteLLM provider are reached here. */
export interface Provider {
  readonly protocol: 'openai' | 'anthropic'
  /** The base URL without an `api_base`; undefined = there is none. */
  readonly baseUrl?: string
  /** The base URL for reranking, where it differs. */
  readonly rerankUrl?: string
  /** The variable that has the key if the file names none; undefined = calls need no key. */
  readonly keyVariable?: string
  /** Returns the base URL for an `api_base` of the file; undefined if it serves another protocol. Without it they are the same. */
  readonly fromApiBase?: (apiBase: string) => string | undefined
  /** Returns the provider's name of a model, where LiteLLM shortens it. */
  readonly fullName?: (model: string) => string
}

const openai = (baseUrl: string, keyVariable: string): Provider => ({
  protocol: 'openai',
  baseUrl,
  keyVariable,
})
/** An OpenAI-style server of one's own. */
const OWN: Provider = { protocol: 'openai' }
const OLLAMA: Provider = {
  protocol: 'openai',
  baseUrl: 'http://localhost:11434/v1',
  fromApiBase: (apiBase) => withVersion(apiBase),
}
const ownProtocol = (): undefined => undefined
const COHERE: Provider = {
  ...openai('https://api.cohere.ai/compatibility/v1', 'COHERE_API_KEY'),
  fromApiBase: ownProtocol,
  rerankUrl: 'https://api.cohere.com/v2',
}

/** The providers that have an OpenAI-style or Anthropic-style endpoint, by LiteLLM's prefix. */
export const PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  Object.entries({
    openai: openai('https://api.openai.com/v1', 'OPENAI_API_KEY'),
    'text-completion-openai': openai('https://api.openai.com/v1', 'OPENAI_API_KEY'),
    anthropic: {
      protocol: 'anthropic',
      baseUrl: 'https://api.anthropic.com/v1',
      keyVariable: 'ANTHROPIC_API_KEY',
      fromApiBase: (apiBase) => withVersion(apiBase.replace(/(\/v1)?\/messages$/, '')),
    },
    // Azure answers OpenAI-style requests there, with the deployment as the model and without an api-version.
    azure: {
      protocol: 'openai',
      keyVariable: 'AZURE_API_KEY',
      fromApiBase: (apiBase) => `${apiBase.replace(/\?.*$/, '').replace(/\/openai(\/.*)?$/, '')}/openai/v1`,
    },
    cerebras: openai('https://api.cerebras.ai/v1', 'CEREBRAS_API_KEY'),
    codestral: openai('https://codestral.mistral.ai/v1', 'CODESTRAL_API_KEY'),
    cohere: COHERE,
    cohere_chat: COHERE,
    custom_openai: OWN,
    dashscope: openai('https://dashscope-intl.aliyuncs.com/compatible-mode/v1', 'DASHSCOPE_API_KEY'),
    deepinfra: openai('https://api.deepinfra.com/v1/openai', 'DEEPINFRA_API_KEY'),
    deepseek: openai('https://api.deepseek.com/v1', 'DEEPSEEK_API_KEY'),
    fireworks_ai: {
      ...openai('https://api.fireworks.ai/inference/v1', 'FIREWORKS_API_KEY'),
      fullName: (model) => (model.includes('/') ? model : `accounts/fireworks/models/${model}`),
    },
    gemini: {
      ...openai('https://generativelanguage.googleapis.com/v1beta/openai', 'GEMINI_API_KEY'),
      fromApiBase: ownProtocol,
    },
    groq: openai('https://api.groq.com/openai/v1', 'GROQ_API_KEY'),
    hosted_vllm: OWN,
    jina_ai: openai('https://api.jina.ai/v1', 'JINA_AI_API_KEY'),
    litellm_proxy: OWN,
    llamafile: OWN,
    lm_studio: OWN,
    meta_llama: openai('https://api.llama.com/compat/v1', 'LLAMA_API_KEY'),
    mistral: openai('https://api.mistral.ai/v1', 'MISTRAL_API_KEY'),
    moonshot: openai('https://api.moonshot.ai/v1', 'MOONSHOT_API_KEY'),
    nvidia_nim: openai('https://integrate.api.nvidia.com/v1', 'NVIDIA_NIM_API_KEY'),
    ollama: OLLAMA,
    ollama_chat: OLLAMA,
    openai_like: OWN,
    openrouter: openai('https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'),
    perplexity: openai('https://api.perplexity.ai', 'PERPLEXITYAI_API_KEY'),
    sambanova: openai('https://api.sambanova.ai/v1', 'SAMBANOVA_API_KEY'),
    together_ai: openai('https://api.together.xyz/v1', 'TOGETHERAI_API_KEY'),
    volcengine: openai('https://ark.cn-beijing.volces.com/api/v3', 'VOLCENGINE_API_KEY'),
    voyage: openai('https://api.voyageai.com/v1', 'VOYAGE_API_KEY'),
    xai: openai('https://api.x.ai/v1', 'XAI_API_KEY'),
    xinference: OWN,
  } satisfies Record<string, Provider>),
)

const SERVICE = 'put a small service in front that speaks the OpenAI protocol, and make it a line'
const AWS = `its requests have a form of their own: ${SERVICE}`
const recipe = (name: string): string =>
  `its paths depend on the model: add a line as in examples/providers/${name}.json of the repository`
const BEDROCK = recipe('bedrock')
const VERTEX = recipe('vertex')

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    azure_ai: `the endpoint depends on the model: add a line with the base URL that Azure AI Foundry shows for it, such as https://RESOURCE.services.ai.azure.com/openai/v1`,
    bedrock: BEDROCK,
    bedrock_converse: BEDROCK,
    cloudflare:
      'add a line with baseUrl https://api.cloudflare.com/client/v4/accounts/ACCOUNT/ai/v1 and your token as its apiKey',
    databricks:
      'add a line with baseUrl https://WORKSPACE/serving-endpoints and a token of yours as its apiKey',
    github:
      'add a line with baseUrl https://models.github.ai/inference, where names begin with the publisher, and your token as its apiKey',
    huggingface:
      'add a line with baseUrl https://router.huggingface.co/v1, or the /v1 of your inference endpoint, and your token as its apiKey',
    sagemaker: AWS,
    sagemaker_chat: AWS,
    vertex_ai: VERTEX,
    vertex_ai_beta: VERTEX,
  }),
)

/** Says what to do for a provider that is not in {@link PROVIDERS}. */
export function suggestionFor(provider: string): string {
  return (
    REASONS.get(provider) ??
    `this converter does not know the provider: if it has an OpenAI-style endpoint, add a line with its baseUrl; else ${SERVICE}`
  )
}

/** Returns LiteLLM's prefix for a model without one, if the name shows it; undefined if it does not. */
export function providerByName(model: string): string | undefined {
  if (/^(gpt-|chatgpt-|o[134](-|$)|ft:gpt-|text-embedding-|dall-e-|whisper-|tts-|sora-)/.test(model))
    return 'openai'
  if (/^claude-/.test(model)) return 'anthropic'
  if (/^(command|rerank-|embed-)/.test(model)) return 'cohere'
  // Without a prefix LiteLLM asks Vertex AI.
  if (/^(gemini|imagen|veo)-/.test(model)) return 'vertex_ai'
  return undefined
}

function withVersion(url: string): string {
  return url.endsWith('/v1') ? url : `${url}/v1`
}
